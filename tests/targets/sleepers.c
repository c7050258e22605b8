/* SPDX-License-Identifier: MIT */
/*
 * sleepers [-n THREADS] [-d DEPTH] [-s SPINNERS]: threads asleep DEPTH frames deep, and threads that spin and record
 * the largest gap between two readings of the clock.
 * Questions: "gap" (nanoseconds since last asked), "progress" (a number that rises while the spinners run).
 */
#include "target.h"

#include <time.h>

static atomic_int sleeping, spinning;
static atomic_ullong largest_gap, turns;
static int depth = 20;

FRAME static int descend(int left)
{
	int below;

	if (left > 1) {
		below = descend(left - 1);
	} else {
		atomic_fetch_add(&sleeping, 1);
		target_block();
		below = 0;
	}
	return below + left;
}

static void *sleeper(void *arg)
{
	prctl(PR_SET_NAME, "sleeper");
	descend(depth);
	return arg;
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

FRAME static void spin(void)
{
	uint64_t before = now_ns();

	for (;;) {
		uint64_t now = now_ns();
		uint64_t gap = now - before;
		unsigned long long largest = atomic_load_explicit(&largest_gap, memory_order_relaxed);

		while (gap > largest && !atomic_compare_exchange_weak(&largest_gap, &largest, gap))
			;
		atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
		before = now;
	}
}

static void *spinner(void *arg)
{
	prctl(PR_SET_NAME, "spinner");
	atomic_fetch_add(&spinning, 1);
	spin();
	return arg;
}

static void answer(const char *question)
{
	if (!strcmp(question, "gap"))
		printf("%llu\n", atomic_exchange(&largest_gap, 0));
	else
		printf("%llu\n", atomic_load(&turns));
}

static void start(int count, void *(*run)(void *))
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536 + (size_t)depth * 128);
	for (int i = 0; i < count; i++) {
		errno = pthread_create(&thread, &attr, run, NULL);
		if (errno)
			target_die("pthread_create");
	}
}

int main(int argc, char **argv)
{
	int threads = 10, spinners = 0, opt;

	target_init();
	while ((opt = getopt(argc, argv, "n:d:s:")) != -1) {
		if (opt == 'n')
			threads = atoi(optarg);
		else if (opt == 'd')
			depth = atoi(optarg);
		else if (opt == 's')
			spinners = atoi(optarg);
		else
			return 2;
	}
	start(threads, sleeper);
	start(spinners, spinner);
	while (atomic_load(&sleeping) < threads || atomic_load(&spinning) < spinners)
		sched_yield();
	target_ready();
	target_serve(answer);
}
