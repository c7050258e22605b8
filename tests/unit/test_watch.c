/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/descriptor.h"
#include "watch/rounds.h"
#include "watch/verdict.h"

/* The rules */

static const struct watch_look asleep = {.at_ns = 1000, .nvcsw = 7, .nivcsw = 2, .cpu_ns = 500, .stack = 42, .state = 'S'};

static enum watch_step step_to(struct watch_look now)
{
	return watch_step_between(&asleep, &now);
}

/* One switch, one nanosecond, another stack: each is a move. */
static void test_still(void **state)
{
	struct watch_look now = asleep;

	now.at_ns = 2000;
	assert_int_equal(step_to(now), WATCH_STILL);
	now.nvcsw++;
	assert_int_equal(step_to(now), WATCH_RETURNED);
	now = asleep;
	now.nivcsw++;
	assert_int_equal(step_to(now), WATCH_RETURNED);
	now = asleep;
	now.cpu_ns++;
	assert_int_equal(step_to(now), WATCH_RETURNED);
	now = asleep;
	now.stack++;
	assert_int_equal(step_to(now), WATCH_RAN);
}

static void test_running_is_no_return(void **state)
{
	struct watch_look now = asleep;

	now.cpu_ns += 1000;
	now.state = 'R';
	assert_int_equal(step_to(now), WATCH_RAN); /* a loop of one instruction has the same stack always */
	now.cpu_ns = asleep.cpu_ns;
	now.running = true;
	assert_int_equal(step_to(now), WATCH_RAN); /* its CPU time was not added up yet */
}

/* A thread that is ready, and gets no CPU, does not move either; nor does one that is stopped. */
static void test_still_in_any_state(void **state)
{
	struct watch_look now = asleep;

	for (const char *letter = "SDTtR"; *letter; letter++) {
		now.state = *letter;
		assert_int_equal(step_to(now), WATCH_STILL);
	}
}

/* Without the stack the counters tell that it did not move, but not that it came back. */
static void test_unknown_stack(void **state)
{
	struct watch_look now = asleep;

	now.stack = 0;
	assert_int_equal(step_to(now), WATCH_STILL);
	now.nvcsw++;
	assert_int_equal(step_to(now), WATCH_RAN);
}

static void test_unknown_cpu(void **state)
{
	struct watch_look now = asleep;

	now.cpu_ns = -1;
	assert_int_equal(step_to(now), WATCH_STILL);
	now.state = 'R';
	now.running = true; /* it may have run all the while: it need not have left the CPU */
	assert_int_equal(step_to(now), WATCH_RAN);
}

static enum watch_verdict verdict(uint32_t still, uint32_t returned, uint32_t ran, uint32_t still_in_a_row)
{
	const struct watched_thread t = {
		.steps = {[WATCH_STILL] = still, [WATCH_RETURNED] = returned, [WATCH_RAN] = ran},
		.still = still_in_a_row,
		.first = {.at_ns = 0, .cpu_ns = 0},
		.last = {.at_ns = 1000000, .cpu_ns = 500000},
	};

	return watch_verdict_of(&t);
}

static void test_verdicts(void **state)
{
	assert_int_equal(verdict(0, 0, 0, 0), WATCH_UNKNOWN);
	assert_int_equal(verdict(1, 0, 0, 1), WATCH_STUCK);
	assert_int_equal(verdict(9, 0, 0, 9), WATCH_STUCK);
	assert_int_equal(verdict(8, 1, 0, 8), WATCH_HALTED); /* it moved, once */
	assert_int_equal(verdict(2, 0, 7, 2), WATCH_HALTED);
	assert_int_equal(verdict(2, 1, 0, 1), WATCH_LOOPS); /* one still step is not enough to say that it has stopped */
	assert_int_equal(verdict(8, 1, 0, 0), WATCH_LOOPS); /* it has just moved */
	assert_int_equal(verdict(0, 9, 0, 0), WATCH_LOOPS);
	assert_int_equal(verdict(0, 8, 1, 0), WATCH_BUSY);
	assert_int_equal(verdict(0, 0, 9, 0), WATCH_BUSY);
}

static void test_little_cpu_is_not_busy(void **state)
{
	struct watched_thread t = {.steps = {[WATCH_RAN] = 3}, .last = {.at_ns = 1000000, .cpu_ns = 49999}};

	assert_int_equal(watch_cpu_share(&t), 500); /* rounded */
	t.last.cpu_ns = 49000;
	assert_int_equal(watch_verdict_of(&t), WATCH_MOVES);
	t.last.cpu_ns = 50000;
	assert_int_equal(watch_verdict_of(&t), WATCH_BUSY);
	t.last.cpu_ns = -1; /* not known: it ran, and who says that is not wrong */
	assert_int_equal(watch_verdict_of(&t), WATCH_BUSY);
}

static void test_end_counts_first(void **state)
{
	const struct watched_thread t = {.steps = {[WATCH_STILL] = 3}, .still = 3, .ended = 4};

	assert_int_equal(watch_verdict_of(&t), WATCH_GONE);
}

static void test_shares(void **state)
{
	struct watched_thread t = {.first = {.cpu_ns = 100}, .last = {.at_ns = 1000, .cpu_ns = 350}, .step_ns = 100, .step_cpu_ns = 130};

	assert_int_equal(watch_cpu_share(&t), 2500);
	assert_int_equal(watch_step_cpu_share(&t), 10000); /* never more than one CPU */
	t.first.cpu_ns = -1;
	t.step_cpu_ns = -1;
	assert_int_equal(watch_cpu_share(&t), -1);
	assert_int_equal(watch_step_cpu_share(&t), -1);
	t = (struct watched_thread){.first = {.cpu_ns = 5}, .last = {.cpu_ns = 5}};
	assert_int_equal(watch_cpu_share(&t), -1); /* one look */
}

/* The rounds */

enum { PID = 100, MOST = 8 };

struct world {
	struct watch_log log;
	struct snapshot *snap;
	struct trace trace;
	uint64_t now;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_true(watch_init(&w->log));
	w->snap = snapshot_create(PID, arch_host());
	w->snap->comm = "server";
	w->snap->capture.method = "bpf";
	w->trace.snap = w->snap;
	assert_true(vec_reserve(&w->snap->threads, MOST)); /* they stay where they are */
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	watch_deinit(&w->log);
	trace_deinit(&w->trace);
	snapshot_destroy(w->snap);
	free(w);
	return 0;
}

static struct snap_thread *add(struct world *w, pid_t tid, uint64_t start, uint64_t pc)
{
	struct snap_thread thread = {.tid = tid, .state = 'S', .start = start, .nvcsw = 1, .cpu_ns = 10, .capture = CAPTURE_ASLEEP};
	struct trace_thread t = {.snap = w->snap};

	snprintf(thread.name, sizeof(thread.name), "t%d", (int)tid);
	assert_true(vec_push(&w->snap->threads, thread));
	t.thread = &w->snap->threads.data[w->snap->threads.len - 1];
	assert_true(vec_push(&t.raw, (struct raw_frame){.pc = pc}));
	assert_true(vec_push(&w->trace.threads, t));
	return &w->snap->threads.data[w->snap->threads.len - 1];
}

static void remove_last(struct world *w)
{
	raw_stack_deinit(&w->trace.threads.data[--w->trace.threads.len].raw);
	w->snap->threads.len--;
}

static void look(struct world *w)
{
	w->now += 1000;
	w->snap->taken_at_monotonic_ns = (int64_t)w->now;
	watch_begin_round(&w->log, w->now);
	assert_true(watch_see(&w->log, &w->trace));
}

static struct watched_thread *watched(struct world *w, pid_t tid)
{
	for (size_t i = 0; i < w->log.threads.len; i++)
		if (w->log.threads.data[i].tid == tid)
			return &w->log.threads.data[i];
	return NULL;
}

static void test_rounds(void **state)
{
	struct world *w = *state;
	struct snap_thread *loops = add(w, 101, 1, 0x1000), *stuck = add(w, 102, 2, 0x2000), *runs = add(w, 103, 3, 0x3000);

	look(w);
	assert_int_equal(watched(w, 101)->verdict, WATCH_UNKNOWN);
	assert_true(watch_has_changed(&w->log)); /* all are new */
	for (int i = 0; i < 3; i++) {
		loops->nvcsw++;
		runs->cpu_ns += 400;
		runs->state = 'R';
		w->trace.threads.data[2].raw.data[0].pc++;
		look(w);
	}
	assert_int_equal(watched(w, 101)->verdict, WATCH_LOOPS);
	assert_int_equal(watched(w, 101)->steps[WATCH_RETURNED], 3);
	assert_int_equal(watched(w, 102)->verdict, WATCH_STUCK);
	assert_int_equal(watched(w, 103)->verdict, WATCH_BUSY);
	assert_int_equal(watch_step_cpu_share(watched(w, 103)), 4000);
	assert_int_equal(watched(w, 103)->looks, 4);
	assert_true(watch_has_changed(&w->log));
	look(w);
	assert_false(watch_has_changed(&w->log));
	stuck->nvcsw++;
	look(w);
	assert_true(watch_has_changed(&w->log));
	assert_int_equal(watched(w, 102)->verdict, WATCH_LOOPS);
	assert_int_equal(watched(w, 103)->verdict, WATCH_HALTED);
	assert_int_equal(watched(w, 103)->last.at_ns - watched(w, 103)->still_since_ns, 2000);
}

static void test_born_and_ended(void **state)
{
	struct world *w = *state;

	add(w, 101, 1, 0x1000);
	look(w);
	assert_int_equal(w->log.nborn, 0);
	add(w, 99, 2, 0x2000); /* numbers begin again: it is sorted in front */
	look(w);
	assert_int_equal(w->log.nborn, 1);
	assert_int_equal(watched(w, 99)->born, 2);
	assert_int_equal(w->log.threads.data[0].tid, 99);
	assert_int_equal(watched(w, 101)->verdict, WATCH_STUCK); /* it is found all the same */
	remove_last(w);
	look(w);
	assert_null(watched(w, 99));
	assert_int_equal(w->log.nended, 1);
	assert_int_equal(w->log.ended.len, 1);
	assert_int_equal(w->log.ended.data[0].ended, 3);
	assert_int_equal(w->log.ended.data[0].verdict, WATCH_GONE);
	assert_null(w->log.ended.data[0].traced);
	assert_true(watch_has_changed(&w->log)); /* it may have had what others wait for */
	look(w);
	assert_false(watch_has_changed(&w->log));
}

/* Nobody moved, but somebody who is not watched has left those to each other who wait. */
static void test_others_have_changed(void **state)
{
	struct wait_peer peers[] = {{.pid = 200}, {.pid = 300}}, other_way_round[] = {{.pid = 300}, {.pid = 200}};
	struct descriptor set = {.fd = 4, .peers = peers, .npeers = 1};
	struct world *w = *state;
	struct snap_thread *t = add(w, 101, 1, 0x1000);
	struct snap_wait *wait;

	assert_true(vec_push(&w->snap->waits, (struct snap_wait){.tid = 101, .kind = WAIT_READ, .on = {.fd = 3, .peers = peers, .npeers = 2, .peers_known = true}}));
	wait = &w->snap->waits.data[0];
	look(w);
	look(w);
	assert_false(watch_has_changed(&w->log));
	wait->on.peers = other_way_round;
	look(w);
	assert_false(watch_has_changed(&w->log));
	wait->on.npeers = 1;
	look(w);
	assert_true(watch_has_changed(&w->log));
	assert_int_equal(watched(w, 101)->step, WATCH_STILL);
	look(w);
	assert_false(watch_has_changed(&w->log));
	wait->on.peers_known = false;
	look(w);
	assert_true(watch_has_changed(&w->log));
	watch_begin_round(&w->log, w->now += 1000);
	assert_true(watch_miss(&w->log, PID, false, "it cannot be read"));
	assert_false(watch_has_changed(&w->log)); /* it is not known to have */
	wait->set = (struct descriptor_set){.data = &set, .len = 1, .total = 1};
	look(w);
	assert_true(watch_has_changed(&w->log));
	set.peers = other_way_round;
	look(w);
	assert_true(watch_has_changed(&w->log));
	t->facts.others = peers; /* children, for one */
	t->facts.nothers = t->facts.total = 2;
	look(w);
	assert_true(watch_has_changed(&w->log));
	t->facts.nothers = t->facts.total = 1;
	look(w);
	assert_true(watch_has_changed(&w->log));
	look(w);
	assert_false(watch_has_changed(&w->log));
}

/* The same number, the same stack and the same counters, but another thread. */
static void test_reused_number(void **state)
{
	struct world *w = *state;
	struct snap_thread *t = add(w, 101, 1, 0x1000);

	look(w);
	t->start = 2;
	look(w);
	assert_int_equal(watched(w, 101)->verdict, WATCH_UNKNOWN);
	assert_int_equal(watched(w, 101)->looks, 1);
	assert_int_equal(watched(w, 101)->born, 2);
	assert_int_equal(w->log.nended, 1);
	assert_int_equal(w->log.nborn, 1);
	/* Another source has another clock: that does not make it another thread. */
	t->start = 77;
	w->snap->capture.method = "proc";
	look(w);
	assert_int_equal(watched(w, 101)->verdict, WATCH_STUCK);
	t->start = 78;
	look(w);
	assert_int_equal(watched(w, 101)->verdict, WATCH_UNKNOWN);
	t->start = 0; /* not told */
	look(w);
	assert_int_equal(watched(w, 101)->verdict, WATCH_STUCK);
}

static void test_failed_look(void **state)
{
	struct world *w = *state;

	add(w, 101, 1, 0x1000);
	look(w);
	watch_begin_round(&w->log, w->now += 1000);
	assert_true(watch_miss(&w->log, PID, false, "it cannot be read"));
	assert_int_equal(w->log.failed, 1);
	assert_string_equal(w->log.notes.data[0], "it cannot be read");
	assert_non_null(watched(w, 101)); /* it did not end by that */
	assert_false(watched(w, 101)->seen);
	assert_false(watch_has_changed(&w->log));
	look(w);
	assert_int_equal(w->log.notes.len, 0);
	assert_int_equal(w->log.all_notes.len, 1);
	assert_int_equal(watched(w, 101)->verdict, WATCH_STUCK);
	assert_int_equal(watched(w, 101)->looks, 2);
}

static void test_end_of_a_process(void **state)
{
	struct world *w = *state;

	add(w, 101, 1, 0x1000);
	look(w);
	watch_begin_round(&w->log, w->now += 1000);
	assert_true(watch_miss(&w->log, PID, true, "process 100 has ended"));
	assert_int_equal(w->log.failed, 0);
	assert_int_equal(w->log.threads.len, 0);
	assert_int_equal(w->log.nended, 1);
	assert_int_equal(watch_process(&w->log, PID)->ended, 2);
}

/* Of a process that is not reaped yet there is still a thread, which has ended. */
static void test_zombies(void **state)
{
	struct world *w = *state;
	struct snap_thread *t = add(w, 101, 1, 0x1000);

	look(w);
	t->status = THREAD_ZOMBIE;
	look(w);
	assert_int_equal(w->log.threads.len, 0);
	assert_int_equal(watch_process(&w->log, PID)->ended, 2);
}

static void test_stack_keys(void **state)
{
	struct world *w = *state;
	struct snap_thread *t = add(w, 101, 1, 0x1000);
	struct trace_thread *traced = &w->trace.threads.data[0];
	uint64_t key = watch_stack_key(traced);

	assert_int_not_equal(key, 0);
	assert_true(vec_push(&traced->raw.runtime, (struct runtime_frame){.code = 5, .place = 1}));
	assert_int_not_equal(watch_stack_key(traced), key); /* the interpreter is in the same place always */
	traced->raw.runtime.data[0].place = 2;
	assert_int_not_equal(watch_stack_key(traced), key);
	traced->raw.runtime.len = 0;
	t->syscall = (struct snap_syscall){.state = SYSCALL_IN, .nr = 0};
	assert_int_not_equal(watch_stack_key(traced), key);
	t->syscall.state = SYSCALL_NONE;
	assert_int_equal(watch_stack_key(traced), key);
	t->capture = CAPTURE_MOVED; /* it may be torn */
	assert_int_equal(watch_stack_key(traced), 0);
	t->capture = CAPTURE_ASLEEP;
	t->status = THREAD_NOT_PERMITTED;
	assert_int_equal(watch_stack_key(traced), 0);
}

/* Who is ready, and for how long, only BPF tells. */
static void test_who_has_a_cpu(void **state)
{
	struct world *w = *state;
	struct snap_thread *t = add(w, 101, 1, 0x1000);

	t->state = 'R';
	t->off_cpu_ns = 5;
	look(w);
	look(w);
	assert_int_equal(watched(w, 101)->step, WATCH_STILL); /* it waits for a CPU */
	t->off_cpu_ns = -1;
	look(w);
	assert_int_equal(watched(w, 101)->step, WATCH_RAN);
	t->state = 'S';
	look(w);
	assert_int_equal(watched(w, 101)->step, WATCH_STILL);
}

/* A stop wakes: that must not look as if the thread had moved by itself. */
static void test_stopped_sleepers_are_told(void **state)
{
	struct world *w = *state;
	struct snap_thread *t = add(w, 101, 1, 0x1000);

	t->pause_ns = 1000; /* it was about to sleep, and had to be held */
	look(w);
	assert_int_equal(w->log.notes.len, 0);
	t->still = STILL_THROUGHOUT;
	look(w);
	assert_int_equal(w->log.notes.len, 1);
	assert_non_null(strstr(w->log.notes.data[0], "had to be stopped"));
}

static void test_places(void **state)
{
	struct world *w = *state;
	char name[16] = "mix";

	add(w, 101, 1, 0x1000);
	look(w);
	watch_put_place(&w->log, watched(w, 101), name);
	strcpy(name, "fold"); /* names are its own */
	look(w);
	watch_put_place(&w->log, watched(w, 101), name);
	look(w);
	watch_put_place(&w->log, watched(w, 101), "mix");
	assert_int_equal(watched(w, 101)->nplaces, 2);
	assert_string_equal(watched(w, 101)->places[0].name, "mix");
	assert_int_equal(watched(w, 101)->places[0].looks, 2);
	assert_string_equal(watched(w, 101)->place, "mix");
	assert_string_equal(watched(w, 101)->place_before, "fold");
	look(w);
	watch_put_place(&w->log, watched(w, 101), NULL);
	assert_null(watched(w, 101)->place);
	assert_int_equal(watched(w, 101)->elsewhere, 1);
}

/* Rounds without end, in which threads come and go, and are in ever new places. */
static void test_memory_does_not_grow(void **state)
{
	enum { ROUNDS = 3000 };
	struct world *w = *state;
	char name[32];
	uint32_t looks = 0;

	add(w, 101, 1, 0x1000);
	add(w, 102, 1, 0x2000);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		w->snap->threads.data[1].start = i + 1;
		look(w);
		snprintf(name, sizeof(name), "f%u", i * 10);
		for (size_t k = 0; k < w->log.threads.len; k++)
			for (int n = 0; n < 10; n++, name[0] = (char)('a' + n))
				watch_put_place(&w->log, &w->log.threads.data[k], name);
		watch_note(&w->log, name);
	}
	assert_int_equal(w->log.threads.len, 2);
	assert_int_equal(w->log.nended, ROUNDS - 1);
	assert_in_range(w->log.ended.len, 1, 64);
	assert_in_range(w->log.all_notes.len, 1, 32);
	assert_in_range(w->log.names.len, 1, 20000);
	for (uint32_t i = 0; i < watched(w, 101)->nplaces; i++)
		looks += watched(w, 101)->places[i].looks;
	assert_int_equal(looks + watched(w, 101)->elsewhere, ROUNDS * 10); /* all are counted */
}

static struct watched_thread stepped(enum watch_step before, enum watch_step step)
{
	return (struct watched_thread){.seen = true, .born = 1, .before = before, .step = step, .place = "f", .place_before = "f"};
}

/* What is told after the first round: what has changed. */
static void test_news(void **state)
{
	struct watched_thread t = stepped(WATCH_FIRST, WATCH_FIRST);

	assert_false(watch_has_news(&t)); /* the first round tells of all */
	t.born = 3;
	assert_true(watch_has_news(&t));
	t = stepped(WATCH_FIRST, WATCH_STILL);
	assert_false(watch_has_news(&t));
	t = stepped(WATCH_FIRST, WATCH_RETURNED);
	assert_true(watch_has_news(&t));
	t = stepped(WATCH_RETURNED, WATCH_STILL); /* a nap that is longer than the interval */
	assert_false(watch_has_news(&t));
	t = stepped(WATCH_RAN, WATCH_RAN);
	t.busy = t.was_busy = true;
	assert_false(watch_has_news(&t)); /* it goes on */
	t.place = "g";
	assert_true(watch_has_news(&t));
	t = stepped(WATCH_RAN, WATCH_STILL);
	t.was_busy = true;
	assert_true(watch_has_news(&t));
	t.seen = false;
	assert_false(watch_has_news(&t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_still),
		cmocka_unit_test(test_running_is_no_return),
		cmocka_unit_test(test_still_in_any_state),
		cmocka_unit_test(test_unknown_stack),
		cmocka_unit_test(test_unknown_cpu),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_little_cpu_is_not_busy),
		cmocka_unit_test(test_end_counts_first),
		cmocka_unit_test(test_shares),
		cmocka_unit_test_setup_teardown(test_rounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_born_and_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others_have_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reused_number, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed_look, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_of_a_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_zombies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stack_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_has_a_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped_sleepers_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_does_not_grow, setup, teardown),
		cmocka_unit_test(test_news),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
