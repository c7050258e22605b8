/* SPDX-License-Identifier: MIT */
/*
 * descriptors WHAT [ARG]: `waiter` is blocked on a descriptor of the kind that is wanted. Where another process has the other end, that is
 * `child`, which is called "partner" and does nothing.
 */
#include "target.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>

static int fds[2];
static const char *argument;

/* Another process, which keeps its own copies of descriptors but for this one. */
static void start_partner(int but)
{
	int named[2];
	char byte;
	pid_t pid;

	if (pipe(named) < 0 || (pid = fork()) < 0)
		target_die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "partner");
		close(but);
		close(named[0]);
		close(named[1]);
		for (;;)
			pause();
	}
	close(named[1]);
	while (read(named[0], &byte, 1) < 0)
		;
	close(named[0]);
	target_threads[target_nthreads].name = "child";
	atomic_store(&target_threads[target_nthreads++].tid, pid);
}

static void fill(int fd)
{
	static char bytes[4096];

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	while (write(fd, bytes, 1) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

FRAME static void read_it(void)
{
	char bytes[64];

	target_arrived();
	while (read(fds[0], bytes, sizeof(bytes)) >= 0 || errno == EINTR)
		;
	target_die("read");
}

static void write_it(void)
{
	static char bytes[4096];

	target_arrived();
	while (write(fds[1], bytes, sizeof(bytes)) >= 0 || errno == EINTR)
		;
	target_die("write");
}

static void make_pipe(void)
{
	if (pipe(fds) < 0)
		target_die("pipe");
}

static void pipe_read(void)
{
	make_pipe();
	start_partner(fds[0]);
	close(fds[1]);
	target_start("waiter", read_it);
}

static void pipe_write(void)
{
	make_pipe();
	start_partner(fds[1]);
	fill(fds[1]);
	close(fds[0]);
	target_start("waiter", write_it);
}

/* The process has the other end itself, and nobody else. */
static void pipe_own(void)
{
	make_pipe();
	target_start("waiter", read_it);
}

static void fifo(void)
{
	if (mkfifo(argument, 0600) < 0)
		target_die("mkfifo");
	fds[0] = open(argument, O_RDONLY | O_NONBLOCK);
	fds[1] = open(argument, O_WRONLY);
	fcntl(fds[0], F_SETFL, 0);
	start_partner(fds[0]);
	close(fds[1]);
	target_start("waiter", read_it);
}

static atomic_int gone;

static void answer_go(const char *question)
{
	(void)question;
	atomic_store(&gone, 1);
	puts("gone");
}

/* A file that is read when it is said so, from byte 10 on. */
static void read_later(void)
{
	target_arrived();
	while (!atomic_load(&gone))
		usleep(1000);
	read_it();
}

static void file_later(void)
{
	fds[0] = open(argument, O_RDONLY);
	if (fds[0] < 0 || lseek(fds[0], 10, SEEK_SET) < 0)
		target_die(argument);
	target_start("waiter", read_later);
}

static const struct {
	const char *name;
	void (*begin)(void);
} cases[] = {
	{"pipe-read", pipe_read}, {"pipe-write", pipe_write}, {"pipe-own", pipe_own}, {"fifo", fifo}, {"file-later", file_later},
};

int main(int argc, char **argv)
{
	target_init();
	argument = argc > 2 ? argv[2] : "";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
			cases[i].begin();
			target_ready();
			target_serve(answer_go);
		}
	return 2;
}
