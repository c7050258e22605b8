/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "base/background.h"
#include "base/parallel.h"

enum { CALLS = 64 };

struct priority {
	int policy, nice;
};

struct seen {
	struct priority priority;
	atomic_uint calls, others; /* of parallel work, and with another priority */
	bool blocked;		   /* SIGINT */
};

static struct priority of_this_thread(void)
{
	return (struct priority){sched_getscheduler(0), getpriority(PRIO_PROCESS, 0)};
}

static void look(void *ctx, size_t i)
{
	struct seen *seen = ctx;
	struct priority own = of_this_thread();

	atomic_fetch_add(&seen->calls, 1);
	atomic_fetch_add(&seen->others, own.policy != seen->priority.policy || own.nice != seen->priority.nice);
}

static void work(void *arg)
{
	struct seen *seen = arg;
	sigset_t mask;

	seen->priority = of_this_thread();
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	seen->blocked = sigismember(&mask, SIGINT) == 1;
	parallel_for(CALLS, look, seen);
}

static void test_gives_way(void **state)
{
	struct priority before = of_this_thread(), after;
	struct seen seen = {0};

	background_run(NULL, work, &seen);
	after = of_this_thread();
	assert_true(seen.priority.nice > before.nice || before.nice == 19);
	assert_int_equal(seen.priority.policy, before.policy == SCHED_OTHER ? SCHED_BATCH : before.policy);
	assert_true(seen.blocked);
	assert_int_equal(after.nice, before.nice);
	assert_int_equal(after.policy, before.policy);
	/* What it starts on other cores gives way, too. */
	assert_int_equal(seen.calls, CALLS);
	assert_int_equal(seen.others, 0);
}

struct places {
	pthread_mutex_t lock;
	cpu_set_t cpus; /* where any of it might run */
};

static void note_place(void *ctx, size_t i)
{
	struct places *places = ctx;
	cpu_set_t own;

	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	pthread_mutex_lock(&places->lock);
	CPU_OR(&places->cpus, &places->cpus, &own);
	pthread_mutex_unlock(&places->lock);
}

static void note_places(void *arg)
{
	parallel_for(CALLS, note_place, arg);
}

static cpu_set_t places_with(const cpu_set_t *busy)
{
	struct places places = {.lock = PTHREAD_MUTEX_INITIALIZER};

	background_run(busy, note_places, &places);
	return places.cpus;
}

static void test_leaves_busy_cpus(void **state)
{
	cpu_set_t before, after, busy, seen;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&busy);
	CPU_SET(cpu, &busy);
	seen = places_with(&busy);
	if (CPU_COUNT(&before) > 1)
		CPU_XOR(&busy, &before, &busy); /* all others */
	assert_true(CPU_EQUAL(&seen, &busy));
	seen = places_with(&before); /* there are no others */
	assert_true(CPU_EQUAL(&seen, &before));
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&after, &before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_gives_way), cmocka_unit_test(test_leaves_busy_cpus)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
