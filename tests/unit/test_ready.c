/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "wait/ready.h"

/* Processes 100, 101 and 102 of one thread each, all to run on CPU 1. */
enum { PROCESSES = 3, FIRST = 100, STRANGER = 9 };

struct world {
	struct arena *arena;
	struct snapshot snaps[PROCESSES];
	struct snap_thread threads[PROCESSES];
	struct trace_thread traced[PROCESSES];
	struct trace traces[PROCESSES], *all[PROCESSES];
};

static void init(struct world *w)
{
	*w = (struct world){.arena = arena_create()};
	assert_non_null(w->arena);
	for (int i = 0; i < PROCESSES; i++) {
		w->snaps[i].pid = FIRST + i;
		w->snaps[i].arena = w->arena;
		w->threads[i] = (struct snap_thread){.tid = FIRST + i, .name = "spinner", .state = 'R', .capture = CAPTURE_MOVED, .facts.cpu = 1};
		w->traced[i] = (struct trace_thread){.snap = &w->snaps[i], .thread = &w->threads[i]};
		w->traces[i].snap = &w->snaps[i];
		w->traces[i].threads.data = &w->traced[i];
		w->traces[i].threads.len = 1;
		w->all[i] = &w->traces[i];
	}
}

/* It was told that this process had the CPU. */
static void is_ready_behind(struct world *w, int i, pid_t pid)
{
	struct snap_thread *t = &w->threads[i];

	t->capture = CAPTURE_ASLEEP;
	t->facts.ahead = (struct wait_peer){.pid = pid, .comm = "other"};
	w->traced[i].wait = (struct wait){.kind = WAIT_CPU, .peers = &t->facts.ahead, .npeers = 1};
}

/* 0: nobody */
static pid_t behind(struct world *w, int i)
{
	return w->traced[i].wait.npeers ? w->traced[i].wait.peers[0].pid : 0;
}

static void settle(struct world *w, size_t n)
{
	waits_settle_ready(w->all, n);
}

static void test_runs(void **state)
{
	struct world w;

	init(&w);
	is_ready_behind(&w, 0, FIRST + 2);
	is_ready_behind(&w, 1, FIRST + 2);
	settle(&w, 3);
	assert_int_equal(behind(&w, 0), FIRST + 2);
	assert_int_equal(behind(&w, 1), FIRST + 2);
	assert_ptr_equal(w.traced[0].wait.peers, &w.threads[0].facts.ahead);
	arena_destroy(w.arena);
}

/* Each was asked while another one had the CPU, or all were, one after the other. */
static void test_has_no_cpu_itself(void **state)
{
	struct world w;

	init(&w);
	is_ready_behind(&w, 0, FIRST + 1);
	is_ready_behind(&w, 1, FIRST + 2);
	settle(&w, 3);
	assert_int_equal(behind(&w, 0), FIRST + 2);
	assert_string_equal(w.traced[0].wait.peers[0].comm, "spinner");
	assert_int_equal(behind(&w, 1), FIRST + 2);

	is_ready_behind(&w, 0, FIRST + 1);
	is_ready_behind(&w, 1, FIRST + 2);
	is_ready_behind(&w, 2, FIRST);
	settle(&w, 3);
	for (int i = 0; i < PROCESSES; i++)
		assert_int_equal(behind(&w, i), 0);
	arena_destroy(w.arena);
}

/* One that got a CPU only after it was asked is not known to have had it. */
static void test_ran_later(void **state)
{
	struct world w;

	init(&w);
	is_ready_behind(&w, 0, FIRST + 1);
	w.threads[1].facts.ahead = (struct wait_peer){.pid = STRANGER, .comm = "stranger"};
	settle(&w, 2);
	assert_int_equal(behind(&w, 0), 0);
	arena_destroy(w.arena);
}

static void test_other_cpu(void **state)
{
	struct world w;

	init(&w);
	is_ready_behind(&w, 0, FIRST + 1);
	w.threads[1].facts.cpu = 2;
	settle(&w, 2);
	assert_int_equal(behind(&w, 0), 0);
	arena_destroy(w.arena);
}

/* Who was not looked at is believed, unless one that was had the CPU. */
static void test_stranger(void **state)
{
	struct world w;

	init(&w);
	is_ready_behind(&w, 0, STRANGER);
	settle(&w, 1);
	assert_int_equal(behind(&w, 0), STRANGER);
	settle(&w, 2);
	assert_int_equal(behind(&w, 0), FIRST + 1);
	arena_destroy(w.arena);
}

/* Of two that had it, the one that was named. */
static void test_two_ran(void **state)
{
	struct world w;

	init(&w);
	is_ready_behind(&w, 1, FIRST);
	settle(&w, 3);
	assert_int_equal(behind(&w, 1), FIRST);
	is_ready_behind(&w, 1, FIRST + 2);
	settle(&w, 3);
	assert_int_equal(behind(&w, 1), FIRST + 2);
	arena_destroy(w.arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs), cmocka_unit_test(test_has_no_cpu_itself), cmocka_unit_test(test_ran_later),
		cmocka_unit_test(test_other_cpu), cmocka_unit_test(test_stranger), cmocka_unit_test(test_two_ran),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
