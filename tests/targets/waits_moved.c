/* SPDX-License-Identifier: MIT */
/*
 * waits_moved: "sleeper" naps while the CPUs are busy, and "mover" moves it between two CPUs all the time, also while it
 * sleeps: a thread that has had more than its share stays in the scheduler's queue for a while after it fell asleep.
 * Question: how many naps; the answer, when they are over: for how many nanoseconds all of them together took longer than
 * they should, which is the most that the sleeper can have been awake without a CPU.
 */
#include "waits.h"

enum { BUSY_US = 2000, NAP_NS = 20000000, BETWEEN_MOVES_US = 100 };

static int cpus[2];
static atomic_int left; /* naps to take */
static uint64_t late_ns;

FRAME static void nap(void)
{
	uint64_t end = waits_now(CLOCK_MONOTONIC) + NAP_NS;
	struct timespec t = {.tv_sec = (time_t)(end / 1000000000), .tv_nsec = (long)(end % 1000000000)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	late_ns += waits_now(CLOCK_MONOTONIC) - end;
}

FRAME static void sleeper(void)
{
	target_arrived();
	for (;;) {
		waits_spin(BUSY_US);
		if (!atomic_load(&left))
			continue;
		nap();
		atomic_fetch_sub(&left, 1);
	}
}

static void go_to(pid_t tid, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(tid, sizeof(one), &one) < 0)
		target_die("sched_setaffinity");
}

FRAME static void mover(void)
{
	target_arrived();
	for (int i = 0;; i ^= 1) {
		go_to(target_threads[0].tid, cpus[i]);
		waits_nap(BETWEEN_MOVES_US);
	}
}

FRAME static void busy(void)
{
	target_arrived();
	for (;;)
		waits_spin(BUSY_US);
}

static void answer(const char *question)
{
	late_ns = 0;
	atomic_store(&left, atoi(question));
	while (atomic_load(&left))
		waits_nap(1000);
	printf("%llu\n", (unsigned long long)late_ns);
}

int main(void)
{
	cpu_set_t all;
	int n = 0;

	target_init();
	sched_getaffinity(0, sizeof(all), &all);
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &all))
			cpus[n++] = cpu;
	if (n < 2) {
		fputs("it takes two CPUs\n", stderr);
		return 77;
	}
	target_start("sleeper", sleeper);
	while (!target_threads[0].tid)
		waits_nap(1000);
	target_start("mover", mover);
	target_start("busy1", busy);
	target_start("busy2", busy);
	target_ready();
	target_serve(answer);
}
