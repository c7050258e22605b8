/* SPDX-License-Identifier: MIT */
/* deep SPIN NAP SLEEP: so many threads that spin, that compute and nap, and that sleep, each some 20 frames deep. Says so when all are. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 18, STACK = 128 << 10, MOST_TURNS = 100000, LONGEST_NAP_US = 3000 };

static atomic_int down;

static void spin(unsigned seed)
{
	for (volatile unsigned long turns = seed;; turns++)
		;
}

static void nap(unsigned seed)
{
	for (;;) {
		struct timespec moment = {.tv_nsec = rand_r(&seed) % LONGEST_NAP_US * 1000};

		for (volatile int turns = rand_r(&seed) % MOST_TURNS; turns > 0; turns--)
			;
		nanosleep(&moment, NULL);
	}
}

static void rest(unsigned seed)
{
	(void)seed;
	for (;;)
		pause();
}

static void (*const kinds[])(unsigned seed) = {spin, nap, rest};

__attribute__((noinline)) static void descend(int left, unsigned kind, unsigned seed)
{
	if (left > 0) {
		descend(left - 1, kind, seed);
		__asm__ volatile(""); /* no tail call */
		return;
	}
	atomic_fetch_add(&down, 1);
	kinds[kind](seed);
}

static void *run(void *arg)
{
	unsigned kind = (unsigned)(uintptr_t)arg;

	descend(DEPTH, kind, (unsigned)gettid());
	return NULL;
}

int main(int argc, char **argv)
{
	int total = 0;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (int kind = 0; kind < 3 && kind + 1 < argc; kind++)
		for (int i = atoi(argv[kind + 1]); i > 0; i--)
			if (pthread_create(&thread, &attr, run, (void *)(uintptr_t)kind) == 0)
				total++;
	while (atomic_load(&down) < total)
		usleep(1000);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
