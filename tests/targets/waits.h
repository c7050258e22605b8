/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_WAITS_H
#define STAKEOUT_TESTS_WAITS_H

/* What the targets of `stakeout offcpu` share: waits that are measured by the thread that waits. */

#include "target.h"

#include <sys/resource.h>
#include <time.h>

/*
 * Ends the chain of frame pointers here: the register is as good as any other for a program without them. Whoever
 * follows it comes no further than this function. On aarch64 gcc leaves the register alone then, and would not save it
 * for us: it stays that of the C library far below, and whoever follows it misses all functions between.
 */
#if defined(KEEP_FRAME_POINTER) || defined(__aarch64__)
#define NO_FRAME_POINTER() ((void)0)
#elif defined(__x86_64__)
#define NO_FRAME_POINTER() __asm__ volatile("movl $1, %%ebp" ::: "rbp", "memory")
#endif

static inline uint64_t waits_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline void waits_nap(long us)
{
	struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static inline void waits_spin(uint64_t us)
{
	uint64_t end = waits_now(CLOCK_THREAD_CPUTIME_ID) + us * 1000;

	while (waits_now(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

/*
 * All waits of one call site. `switches` is the kernel's own count of them: more than one in a call that goes to sleep
 * again, and none in one that needed not wait. `preempted` tells how far a count over the threshold can be trusted.
 */
struct waits_site {
	const char *name;
	uint64_t calls;
	uint64_t switches;
	uint64_t again; /* of these, beyond the first in a call */
	uint64_t preempted;
	uint64_t count;     /* calls that took at least the threshold */
	uint64_t near;      /* of these, calls that waited less or not much longer, or not just once */
	uint64_t total_ns;  /* of `count` */
	uint64_t waited_ns; /* likewise, without the time on a CPU */
	uint64_t max_ns;
	uint64_t all_ns; /* of all calls */
	uint64_t off_ns; /* likewise, without the time on a CPU */
};

struct waits_mark {
	struct rusage usage;
	uint64_t cpu;
	uint64_t wall;
};

static inline struct waits_mark waits_begin(void)
{
	struct waits_mark m;

	getrusage(RUSAGE_THREAD, &m.usage);
	m.cpu = waits_now(CLOCK_THREAD_CPUTIME_ID);
	m.wall = waits_now(CLOCK_MONOTONIC);
	return m;
}

static inline void waits_end(struct waits_site *site, const struct waits_mark *m, uint64_t threshold)
{
	uint64_t wall = waits_now(CLOCK_MONOTONIC) - m->wall, cpu = waits_now(CLOCK_THREAD_CPUTIME_ID) - m->cpu;
	uint64_t off = wall > cpu ? wall - cpu : 0, switches, preempted;
	struct rusage now;

	getrusage(RUSAGE_THREAD, &now);
	switches = (uint64_t)(now.ru_nvcsw - m->usage.ru_nvcsw);
	preempted = (uint64_t)(now.ru_nivcsw - m->usage.ru_nivcsw);
	site->calls++;
	site->switches += switches;
	site->again += switches > 1 ? switches - 1 : 0;
	site->preempted += preempted;
	site->all_ns += wall;
	site->off_ns += off;
	if (wall > site->max_ns)
		site->max_ns = wall;
	if (wall < threshold)
		return;
	site->count++;
	site->near += off < 2 * threshold || switches != 1 || preempted;
	site->total_ns += wall;
	site->waited_ns += off;
}

#endif
