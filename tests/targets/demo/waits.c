/* SPDX-License-Identifier: MIT */
/* The half of the demo that is written in C: static functions that the compiler inlines, over plain system calls. */
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "waits.h"

static void transfer(pthread_mutex_t *mutex, long *balance, long amount)
{
	pthread_mutex_lock(mutex);
	*balance += amount;
	pthread_mutex_unlock(mutex);
}

void *update_account(void *mutex)
{
	long balance = 0;

	for (;;)
		transfer(mutex, &balance, 100);
}

static int read_exactly(int fd, uint8_t *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = recv(fd, buf, len, 0);

		if (n <= 0)
			return -1;
		buf += n;
		len -= n;
	}
	return 0;
}

static int read_header(int fd)
{
	uint8_t header[16];

	return read_exactly(fd, header, sizeof(header));
}

void *serve_client(void *fd)
{
	while (read_header(*(int *)fd) == 0)
		;
	return NULL;
}

static void back_off(unsigned seconds)
{
	struct timespec left = {.tv_sec = seconds};

	while (nanosleep(&left, &left) != 0)
		;
}

void *retry_later(void *unused)
{
	(void)unused;
	for (;;)
		back_off(3600);
}
