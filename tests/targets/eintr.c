/* SPDX-License-Identifier: MIT */
/*
 * eintr: threads blocked in the system calls that fail with EINTR after any ptrace stop, also when no signal has a
 * handler. Question: any; the answer is the number of EINTR seen by each.
 */
#include "target.h"

#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

enum { COPIES = 2, HOUR = 3600 };

static atomic_int epoll_eintr, sem_eintr, sigwait_eintr, recv_eintr;

static void count(atomic_int *counter)
{
	if (errno != EINTR)
		target_die("blocking call");
	atomic_fetch_add(counter, 1);
}

FRAME static void in_epoll_wait(void)
{
	int fd = epoll_create1(0);
	struct epoll_event event;

	target_arrived();
	while (epoll_wait(fd, &event, 1, HOUR * 1000) < 0)
		count(&epoll_eintr);
}

FRAME static void in_semtimedop(void)
{
	int id = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf down = {.sem_op = -1};
	struct timespec hour = {.tv_sec = HOUR};

	target_arrived();
	while (semtimedop(id, &down, 1, &hour) < 0)
		count(&sem_eintr);
}

FRAME static void in_sigtimedwait(void)
{
	struct timespec hour = {.tv_sec = HOUR};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	target_arrived();
	while (sigtimedwait(&set, NULL, &hour) < 0)
		count(&sigwait_eintr);
}

FRAME static void in_recv(void)
{
	struct timeval hour = {.tv_sec = HOUR};
	int pair[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		target_die("socketpair");
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof(hour));
	target_arrived();
	while (recv(pair[0], &byte, 1, 0) < 0)
		count(&recv_eintr);
}

static void answer(const char *question)
{
	printf("epoll_wait=%d semtimedop=%d sigtimedwait=%d recv=%d\n", atomic_load(&epoll_eintr),
	       atomic_load(&sem_eintr), atomic_load(&sigwait_eintr), atomic_load(&recv_eintr));
}

int main(void)
{
	sigset_t set;

	target_init();
	/* System V semaphores outlive their process; in a namespace of its own they do not. */
	if (unshare(CLONE_NEWIPC))
		target_die("unshare (needs root)");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < COPIES; i++) {
		target_start("epoll_wait", in_epoll_wait);
		target_start("semtimedop", in_semtimedop);
		target_start("sigtimedwait", in_sigtimedwait);
		target_start("recv", in_recv);
	}
	target_ready();
	target_serve(answer);
}
