/* SPDX-License-Identifier: MIT */
/*
 * waits_idle [SLEEPERS]: the threads "events" and "pool" wait for work that hardly ever comes, "worker" works half of
 * the time, and so many more "sleeper"s wait for work that never comes.
 * Question: any; the answer is how often the worker has waited.
 */
/* build: -fomit-frame-pointer */
#include "waits.h"

#include <sys/epoll.h>

enum { TICK_MS = 1000, WORK_US = 5000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, never = PTHREAD_COND_INITIALIZER;
static atomic_ullong naps;
static int asleep; /* under the lock */

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
	until.tv_nsec += TICK_MS * 1000000L;
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

FRAME static void *sleeper_wait(void *unused)
{
	pthread_setname_np(pthread_self(), "sleeper");
	pthread_mutex_lock(&lock);
	for (asleep++;;)
		pthread_cond_wait(&never, &lock);
	return unused;
}

static void start_sleepers(int n)
{
	int all = 0;
	pthread_t thread;

	for (int i = 0; i < n; i++) {
		errno = pthread_create(&thread, NULL, sleeper_wait, NULL);
		if (errno)
			target_die("pthread_create");
	}
	while (!all) {
		sched_yield();
		pthread_mutex_lock(&lock);
		all = asleep == n;
		pthread_mutex_unlock(&lock);
	}
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

int main(int argc, char **argv)
{
	target_init();
	start_sleepers(argc > 1 ? atoi(argv[1]) : 0);
	target_start("events", events);
	target_start("pool", pool);
	target_start("worker", worker);
	target_ready();
	target_serve(answer);
}
