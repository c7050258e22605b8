/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * waits KIND N [NAPS]: N threads that wait, or for "crowd" N processes with 51 descriptors each. Prints a line when they are there. The main thread
 * pauses, or naps.
 */

static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t there;

static void *lock(void *arg)
{
	pthread_mutex_lock(&taken);
	return arg;
}

static void *sleep_long(void *arg)
{
	for (;;)
		nanosleep(&(struct timespec){.tv_sec = 1000000}, NULL);
	return arg;
}

static void *read_it(void *arg)
{
	char byte[8];

	while (read((int)(long)arg, byte, sizeof(byte)) > 0)
		;
	return NULL;
}

static void *receive(void *arg)
{
	char byte;

	recv((int)(long)arg, &byte, 1, 0);
	return NULL;
}

static void *(*waiting)(void *);

static void *begin(void *arg)
{
	pthread_barrier_wait(&there);
	return waiting(arg);
}

static void start(void *(*wait)(void *), int fd)
{
	pthread_attr_t attr;
	pthread_t thread;

	waiting = wait;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	if (fd < 0 || pthread_create(&thread, &attr, begin, (void *)(long)fd) != 0)
		exit(1);
}

/* The end that is read. */
static int make_pipe(void)
{
	int ends[2];

	return pipe(ends) == 0 ? ends[0] : -1;
}

/* The end that was accepted. */
static int connect_tcp(void)
{
	static struct sockaddr_in at = {.sin_family = AF_INET};
	static int listener = -1;
	socklen_t len = sizeof(at);
	int client = socket(AF_INET, SOCK_STREAM, 0);

	if (listener < 0) {
		at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		listener = socket(AF_INET, SOCK_STREAM, 0);
		if (bind(listener, (struct sockaddr *)&at, len) < 0 || listen(listener, 8) < 0 ||
		    getsockname(listener, (struct sockaddr *)&at, &len) < 0)
			exit(1);
	}
	return connect(client, (struct sockaddr *)&at, len) == 0 ? accept(listener, NULL, NULL) : -1;
}

static void crowd(int n)
{
	int ends[2];

	for (int i = 0; i < n; i++) {
		if (fork() != 0)
			continue;
		for (int k = 0; k < 12; k++)
			if (pipe(ends) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
				exit(1);
		for (;;)
			pause();
	}
}

int main(int argc, char **argv)
{
	const struct rlimit limit = {20000, 20000};
	const char *kind = argc > 2 ? argv[1] : "";
	const bool naps = argc > 3;
	const int n = argc > 2 ? atoi(argv[2]) : 0, shared = eventfd(0, 0), one = make_pipe();

	setrlimit(RLIMIT_NOFILE, &limit);
	pthread_mutex_lock(&taken);
	if (strcmp(kind, "crowd") == 0)
		crowd(n);
	pthread_barrier_init(&there, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++) {
		if (strcmp(kind, "lock") == 0)
			start(lock, 0);
		else if (strcmp(kind, "sleep") == 0)
			start(sleep_long, 0);
		else if (strcmp(kind, "eventfd") == 0)
			start(read_it, shared);
		else if (strcmp(kind, "pipe") == 0)
			start(read_it, one);
		else if (strcmp(kind, "eventfds") == 0)
			start(read_it, eventfd(0, 0));
		else if (strcmp(kind, "pipes") == 0)
			start(read_it, make_pipe());
		else if (strcmp(kind, "tcp") == 0)
			start(receive, connect_tcp());
	}
	if (strcmp(kind, "crowd") != 0)
		pthread_barrier_wait(&there);
	puts("ready");
	fflush(stdout);
	for (;;)
		if (naps)
			usleep(10000);
		else
			pause();
}
