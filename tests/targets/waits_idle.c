/* SPDX-License-Identifier: MIT */
/*
 * waits_idle: the threads "events" and "pool" wait for work that hardly ever comes, "worker" works half of the time.
 * Question: any; the answer is how often the worker has waited.
 */
/* build: -fomit-frame-pointer */
#include "waits.h"

#include <sys/epoll.h>

enum { TICK_MS = 20, WORK_US = 5000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static atomic_ullong naps;

FRAME static void events_wait(int epoll)
{
	struct epoll_event event;

	epoll_wait(epoll, &event, 1, TICK_MS);
}

FRAME static void events(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	target_arrived();
	for (;;)
		events_wait(epoll);
}

FRAME static void pool_wait(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += TICK_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&lock);
	pthread_cond_timedwait(&work, &lock, &until);
	pthread_mutex_unlock(&lock);
}

FRAME static void pool(void)
{
	target_arrived();
	for (;;)
		pool_wait();
}

FRAME static void worker_wait(void)
{
	waits_nap(WORK_US);
	atomic_fetch_add(&naps, 1);
}

FRAME static void worker(void)
{
	target_arrived();
	for (;;) {
		worker_wait();
		waits_spin(WORK_US);
	}
}

static void answer(const char *question)
{
	printf("%llu\n", atomic_load(&naps));
}

int main(void)
{
	target_init();
	target_start("events", events);
	target_start("pool", pool);
	target_start("worker", worker);
	target_ready();
	target_serve(answer);
}
