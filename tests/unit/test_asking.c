/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "capture/take.h"
#include "target/ask.h"

/* Two threads sleep, each until it is told to run for a moment. The memory that is asked for is as at the fork. */
static int go[2][2], ran[2];
static uint8_t wanted[32] = "what is asked for of the child";

static void *run_when_told(void *arg)
{
	char byte;

	while (read(*(int *)arg, &byte, 1) == 1)
		if (write(ran[1], "", 1) != 1)
			_exit(1);
	return NULL;
}

static void two_threads(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_when_told, &go[1][0]) != 0)
		_exit(1);
	run_when_told(&go[0][0]);
}

enum { NOBODY = -1 };

struct fixture {
	pid_t pid;
	struct target *target;
	struct capture *capture;
	struct snapshot *snap;

	/* what the asker does, and sees */
	int wakes;           /* the thread that is woken in the second round, or NOBODY */
	unsigned wants_for;  /* so many rounds */
	uint64_t address, len;
	bool fails;
	unsigned asked[2]; /* how often, for each of the threads */
	unsigned answered[2];
	unsigned forgotten[2];
};

static size_t index_of(const struct snapshot *snap, const struct snap_thread *thread)
{
	size_t i = (size_t)(thread - snap->threads.data);

	assert_true(i < 2);
	return i;
}

/* The main thread is the one with the process's number. */
static void wake(const struct fixture *f, int thread)
{
	bool is_main = f->snap->threads.data[thread].tid == f->pid;
	char byte;

	assert_int_equal(write(go[is_main ? 0 : 1][1], "", 1), 1);
	assert_int_equal(read(ran[0], &byte, 1), 1);
}

static bool ask(void *state, const struct snapshot *snap, const struct snap_thread *thread,
		const struct ask *answers, struct ask *wants)
{
	struct fixture *f = state;
	size_t i = index_of(snap, thread);
	bool wakes = f->asked[i]++ == 1 && f->wakes == (int)i;

	if (f->fails)
		return false;
	for (size_t k = 0; k < answers->len; k++) {
		f->answered[i]++;
		assert_int_equal(answers->data[k].address, f->address);
		if (answers->data[k].got == sizeof(wanted))
			assert_memory_equal(answers->data[k].data, wanted, sizeof(wanted));
	}
	if (wakes)
		wake(f, f->wakes);
	return f->asked[i] > f->wants_for || ask_want(wants, f->address, f->len, ASK_BYTES);
}

static void forget(void *state, const struct snapshot *snap, const struct snap_thread *thread)
{
	struct fixture *f = state;

	for (size_t i = 0; i < snap->copies.len; i++)
		assert_int_not_equal(snap->copies.data[i].tid, thread->tid); /* they are gone by then */
	f->forgotten[index_of(snap, thread)]++;
}

/* Not one that was pushed off its CPU on its way to sleep: it would run once more. */
static bool all_captured_as(const struct snapshot *snap, enum thread_capture how)
{
	for (size_t i = 0; i < snap->threads.len; i++)
		if (snap->threads.data[i].capture != how || (how == CAPTURE_ASLEEP && snap->threads.data[i].state != 'S'))
			return false;
	return snap->threads.len == 2;
}

/* A snapshot with both threads asleep, or held. */
static void start(struct fixture *f, enum source_choice source, enum stop_mode stop)
{
	const struct capture_options options = {
		.stop = stop, .source = source, .stack_size = 1 << 20, .stop_timeout_ms = 10000};
	struct err err = {0};

	*f = (struct fixture){.wakes = NOBODY, .wants_for = 1, .address = (uintptr_t)wanted, .len = sizeof(wanted)};
	for (int i = 0; i < 2; i++)
		assert_int_equal(pipe(go[i]), 0);
	assert_int_equal(pipe(ran), 0);
	f->pid = child_start(two_threads);
	for (int i = 0; i < 2; i++) /* both have run once when these come back */
		assert_int_equal(write(go[i][1], "", 1), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(ran[0], &(char){0}, 1), 1);
	assert_int_equal(target_open(f->pid, NULL, &f->target), 0);
	if (capture_open(f->target, &options, &err, &f->capture) < 0) {
		print_message("skipped: %s\n", err.msg);
		target_close(f->target);
		child_end(f->pid);
		skip();
	}
	for (int i = 0; i < 5000 && (!f->snap || !all_captured_as(f->snap, stop == STOP_ALL ? CAPTURE_HELD : CAPTURE_ASLEEP));
	     i++) {
		snapshot_destroy(f->snap); /* they are on their way to sleep, or a busy machine kept one from stopping in time */
		if (capture_take(f->capture, &err, &f->snap) < 0)
			fail_msg("%s", err.msg);
	}
	assert_true(all_captured_as(f->snap, stop == STOP_ALL ? CAPTURE_HELD : CAPTURE_ASLEEP));
}

static void finish(struct fixture *f)
{
	capture_close(f->capture);
	target_close(f->target);
	snapshot_destroy(f->snap);
	child_end(f->pid);
	for (int i = 0; i < 2; i++) {
		close(go[0][i]);
		close(go[1][i]);
		close(ran[i]);
	}
}

static int run(struct fixture *f, unsigned max_rounds)
{
	const struct asker asker = {.max_rounds = max_rounds, .ask = ask, .forget = forget};

	return capture_ask(f->capture, f->snap, &asker, f, NULL);
}

static size_t count_copies(const struct fixture *f, size_t thread)
{
	size_t n = 0;

	for (size_t i = 0; i < f->snap->copies.len; i++)
		n += f->snap->copies.data[i].tid == f->snap->threads.data[thread].tid;
	return n;
}

static void check_sleepers(enum source_choice source)
{
	struct fixture f;

	start(&f, source, STOP_AUTO);
	assert_int_equal(run(&f, 5), 0);
	for (size_t i = 0; i < 2; i++) {
		struct snapshot_mem mem;
		uint8_t bytes[sizeof(wanted)] = {0};

		assert_int_equal(f.asked[i], 2); /* the second time it wanted nothing more */
		assert_int_equal(f.answered[i], 1);
		assert_int_equal(f.forgotten[i], 0);
		assert_int_equal(count_copies(&f, i), 1);
		snapshot_mem_init(&mem, f.snap, &f.snap->threads.data[i]);
		assert_true(mem_read_exact(&mem.mem, (uintptr_t)wanted, bytes, sizeof(bytes)));
		assert_memory_equal(bytes, wanted, sizeof(wanted));
	}
	assert_int_equal(f.snap->asked_bytes >= 2 * sizeof(wanted), true);
	finish(&f);
}

static void test_sleepers_bpf(void **state)
{
	check_sleepers(SOURCE_BPF);
}

static void test_sleepers_proc(void **state)
{
	check_sleepers(SOURCE_PROC);
}

/* Its bytes may be of before or after: they do not count. What the other one got does. */
static void check_runner(enum source_choice source)
{
	for (int runner = 0; runner < 2; runner++) {
		struct fixture f;

		start(&f, source, STOP_AUTO);
		f.wakes = runner;
		f.wants_for = 3;
		assert_int_equal(run(&f, 5), 0);
		assert_int_equal(f.asked[0], 4);
		assert_int_equal(f.asked[1], 4);
		assert_int_equal(f.forgotten[runner], 1);
		assert_int_equal(count_copies(&f, (size_t)runner), 0);
		assert_int_equal(f.forgotten[1 - runner], 0);
		assert_int_equal(count_copies(&f, (size_t)(1 - runner)), 3);
		finish(&f);
	}
}

static void test_runner_bpf(void **state)
{
	check_runner(SOURCE_BPF);
}

static void test_runner_proc(void **state)
{
	check_runner(SOURCE_PROC);
}

/* Who has run before it is asked for the first time has moved just as well. */
static void test_ran_before(void **state)
{
	struct fixture f;

	start(&f, SOURCE_AUTO, STOP_AUTO);
	wake(&f, 0);
	assert_int_equal(run(&f, 5), 0);
	assert_int_equal(f.forgotten[0], 1);
	assert_int_equal(count_copies(&f, 0), 0);
	assert_int_equal(count_copies(&f, 1), 1);
	finish(&f);
}

/* What was held runs on: it is asked, for what it makes of the snapshot, but gets nothing. */
static void test_held(void **state)
{
	struct fixture f;
	uint64_t before;

	start(&f, SOURCE_AUTO, STOP_ALL);
	before = f.snap->asked_bytes;
	assert_int_equal(run(&f, 5), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(f.asked[i], 1);
		assert_int_equal(f.answered[i], 0);
		assert_int_equal(f.forgotten[i], 0); /* there is nothing to forget */
	}
	assert_int_equal(f.snap->copies.len, 0);
	assert_int_equal(f.snap->asked_bytes, before);
	finish(&f);
}

/* The last answer is heard, too. */
static void test_rounds_are_bounded(void **state)
{
	struct fixture f;

	start(&f, SOURCE_AUTO, STOP_AUTO);
	f.wants_for = 1000;
	assert_int_equal(run(&f, 3), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(f.asked[i], 4);
		assert_int_equal(f.answered[i], 3);
		assert_int_equal(count_copies(&f, i), 3);
	}
	finish(&f);
}

static void test_unreadable(void **state)
{
	struct fixture f;

	start(&f, SOURCE_AUTO, STOP_AUTO);
	f.address = 16;
	assert_int_equal(run(&f, 5), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(f.answered[i], 1);
		assert_int_equal(f.forgotten[i], 0);
	}
	assert_int_equal(f.snap->copies.len, 0);
	finish(&f);
}

static void test_ended(void **state)
{
	struct fixture f;

	start(&f, SOURCE_AUTO, STOP_AUTO);
	kill(f.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)f.pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_int_equal(run(&f, 5), 0);
	assert_int_equal(f.snap->copies.len, 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(f.forgotten[i], 1);
	finish(&f);
}

static void test_asker_that_fails(void **state)
{
	struct fixture f;

	start(&f, SOURCE_AUTO, STOP_AUTO);
	f.fails = true;
	assert_int_equal(run(&f, 5), -ENOMEM);
	assert_int_equal(f.asked[0] + f.asked[1], 1);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleepers_bpf), cmocka_unit_test(test_sleepers_proc),
		cmocka_unit_test(test_runner_bpf),   cmocka_unit_test(test_runner_proc),
		cmocka_unit_test(test_ran_before),   cmocka_unit_test(test_held),
		cmocka_unit_test(test_unreadable),   cmocka_unit_test(test_rounds_are_bounded),
		cmocka_unit_test(test_ended),        cmocka_unit_test(test_asker_that_fails),
	};

	return cmocka_run_group_tests_name("asking", tests, NULL, NULL);
}
