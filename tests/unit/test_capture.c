/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "capture/take.h"

/* Each test runs with both sources of a pass. */
static const struct capture_options defaults = {.stack_size = 1 << 20, .stop_timeout_ms = 1000, .kernel_stacks = true};

static struct snapshot *take(pid_t pid, enum source_choice source, enum stop_mode stop)
{
	struct capture_options options = defaults;
	struct target *target;
	struct capture *capture;
	struct snapshot *snap;
	struct err err = {0};

	options.source = source;
	options.stop = stop;
	assert_int_equal(target_open(pid, NULL, &target), 0);
	if (capture_open(target, &options, &err, &capture) < 0) {
		print_message("skipped: %s\n", err.msg);
		target_close(target);
		child_end(pid);
		skip();
	}
	if (capture_take(capture, &err, &snap) < 0)
		fail_msg("%s", err.msg);
	capture_close(capture);
	target_close(target);
	return snap;
}

static void wait_until_asleep(pid_t pid)
{
	for (int i = 0; i < 5000; i++) {
		struct snapshot *snap = take(pid, SOURCE_PROC, STOP_NONE);
		bool asleep = snap->threads.len == 1 && snap->threads.data[0].state == 'S';

		snapshot_destroy(snap);
		if (asleep)
			return;
		usleep(1000);
	}
	fail_msg("the child does not fall asleep");
}

static void check_sleeper(enum source_choice source, const char *method)
{
	pid_t pid = child_start(child_sleeps);
	const struct snap_thread *t;
	struct snapshot *snap;

	wait_until_asleep(pid);
	snap = take(pid, source, STOP_AUTO);
	assert_string_equal(snap->capture.method, method);
	assert_int_equal(snap->threads.len, 1);
	assert_true(snap->capture.consistent);
	assert_int_equal(snap->capture.stopped_threads, 0);
	t = &snap->threads.data[0];
	assert_int_equal(t->tid, pid);
	/* One that fell asleep within the time that a pass takes is read in a window. */
	assert_true(t->capture == CAPTURE_ASLEEP || (source == SOURCE_BPF && t->capture == CAPTURE_QUIET));
	assert_int_equal(t->pause_ns, 0);
	assert_int_equal(t->syscall.state, SYSCALL_IN);
	assert_int_equal(t->stack.start, t->regs.v[snap->arch->user_sp]);
	assert_int_equal(t->stack.start + t->stack.len, t->stack.region_end);
	assert_true(snap->images.len >= 1);
	snapshot_destroy(snap);
	child_end(pid);
}

static void test_sleeper_bpf(void **state)
{
	check_sleeper(SOURCE_BPF, "bpf");
}

static void test_sleeper_proc(void **state)
{
	check_sleeper(SOURCE_PROC, "proc");
}

/* The child was forked from this program: the same code is at the same addresses. */
static void check_spinner(enum source_choice source)
{
	pid_t pid = child_start(child_spins);
	const struct snap_thread *t;
	struct snapshot *snap;
	uint64_t pc;

	snap = take(pid, source, STOP_AUTO);
	t = &snap->threads.data[0];
	pc = t->regs.v[snap->arch->user_pc];
	assert_int_equal(t->status, THREAD_CAPTURED);
	assert_true(t->stack.len > 0);
	assert_non_null(maps_find(&snap->maps, pc));
	if (t->capture == CAPTURE_HELD) {
		assert_true(t->pause_ns > 0);
		assert_int_equal(snap->capture.stopped_threads, 1);
	}
	snapshot_destroy(snap);

	snap = take(pid, SOURCE_PROC, STOP_NONE);
	assert_int_equal(snap->threads.data[0].status, THREAD_RUNNING);
	assert_non_null(snap->threads.data[0].why);
	assert_false(snap->capture.consistent);
	snapshot_destroy(snap);
	child_end(pid);
}

static void test_spinner_bpf(void **state)
{
	check_spinner(SOURCE_BPF);
}

static void test_spinner_proc(void **state)
{
	check_spinner(SOURCE_PROC);
}

static void *sleep_forever(void *arg)
{
	child_sleeps();
	return NULL;
}

static void child_with_threads(void)
{
	for (int i = 0; i < 9; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, sleep_forever, NULL);
	}
	child_spins();
}

static void test_stop_all(void **state)
{
	pid_t pid = child_start(child_with_threads);
	struct snapshot *snap = NULL;

	/* A busy machine may let one of them stop so late that the others are not held for it. */
	for (int i = 0; i < 5000 && (!snap || snap->threads.len < 10 || !snap->capture.consistent); i++) {
		snapshot_destroy(snap);
		snap = take(pid, SOURCE_AUTO, STOP_ALL);
	}
	assert_int_equal(snap->threads.len, 10);
	assert_string_equal(snap->capture.method, "ptrace");
	assert_int_equal(snap->capture.stopped_threads, 10);
	assert_true(snap->capture.consistent);
	for (size_t i = 0; i < snap->threads.len; i++) {
		assert_int_equal(snap->threads.data[i].capture, CAPTURE_HELD);
		assert_true(snap->threads.data[i].stack.len > 0);
	}
	snapshot_destroy(snap);
	child_end(pid);
}

static void test_unmoved(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct capture_options options = defaults;
	struct target *target;
	struct capture *capture;
	struct snapshot *snap;

	wait_until_asleep(pid);
	assert_int_equal(target_open(pid, NULL, &target), 0);
	assert_int_equal(capture_open(target, &options, NULL, &capture), 0);
	assert_int_equal(capture_take(capture, NULL, &snap), 0);
	assert_int_equal(take_look(capture), 0);
	assert_true(capture_unmoved(capture, &snap->threads.data[0]));
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	kill(pid, SIGCONT);
	assert_int_equal(take_look(capture), 0);
	assert_false(capture_unmoved(capture, &snap->threads.data[0]));
	snapshot_destroy(snap);
	capture_close(capture);
	target_close(target);
	child_end(pid);
}

static bool is_noted(const struct snapshot *snap, const char *what)
{
	for (size_t i = 0; i < snap->notes.len; i++)
		if (strstr(snap->notes.data[i], what))
			return true;
	return false;
}

/* What a sleeper's registers were cannot be learned once it has run; that is told. */
static void test_registers_of_a_sleeper_that_ran(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct capture_options options = defaults;
	struct target *target;
	struct capture *capture;
	struct snapshot *snap;
	struct snap_thread *t;

	options.source = SOURCE_PROC;
	wait_until_asleep(pid);
	assert_int_equal(target_open(pid, NULL, &target), 0);
	assert_int_equal(capture_open(target, &options, NULL, &capture), 0);
	assert_int_equal(capture_take(capture, NULL, &snap), 0);
	t = &snap->threads.data[0];
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	kill(pid, SIGCONT);
	assert_int_equal(capture_complete_registers(capture, snap, &t, 1, NULL), 0);
	assert_int_equal(snap->capture.stopped_threads, 0);
	assert_true(is_noted(snap, "1 sleeping thread had run on before registers"));
	snapshot_destroy(snap);
	capture_close(capture);
	target_close(target);
	child_end(pid);
}

static void test_only_one_thread(void **state)
{
	pid_t pid = child_start(child_sleeps), other = pid + 1;
	struct capture_options options = defaults;
	struct target *target;
	struct capture *capture;
	struct snapshot *snap;
	struct err err = {0};

	options.tids = &other;
	options.ntids = 1;
	assert_int_equal(target_open(pid, NULL, &target), 0);
	assert_int_equal(capture_open(target, &options, NULL, &capture), 0);
	assert_int_equal(capture_take(capture, &err, &snap), -ESRCH);
	assert_non_null(strstr(err.msg, "has no thread"));
	capture_close(capture);
	target_close(target);
	child_end(pid);
}

static int order[2]; /* a pipe: what is written there makes the child execute another program */

static void child_executes(void)
{
	char byte;

	if (read(order[0], &byte, 1) == 1)
		execlp("sleep", "sleep", "1000", NULL);
}

/* What on_held has told since on_hold. */
struct report {
	size_t threads;
	uint64_t code; /* where the memory map of their snapshot begins */
	unsigned anew;
};

static void on_held(void *arg, struct snapshot *snap, pid_t tid, const struct user_regs *regs, struct mem *peek)
{
	struct report *told = arg;

	told->code = told->threads++ ? told->code : snap->maps.data[0].start;
	if (told->code != snap->maps.data[0].start)
		told->anew = 0; /* of two snapshots: never enough below */
	if (write(order[1], "x", 1) != 1)
		told->anew = 0;
}

static int on_hold(void *arg, struct snapshot *snap, struct err *err)
{
	struct report *told = arg;

	told->threads = 0;
	told->anew++;
	return 0;
}

/*
 * The child is let go with the order, and may be quick enough for the pass behind the hold to see another program.
 * That one may be waiting for its own pages (state D) when its turn comes, and is not held then.
 */
static unsigned take_executing(void)
{
	struct capture_options options = defaults;
	struct target *target;
	struct capture *capture;
	struct snapshot *snap;
	struct report told = {0};
	size_t held = 0;
	pid_t pid;

	assert_int_equal(pipe(order), 0);
	pid = child_start(child_executes);
	wait_until_asleep(pid);
	options.stop = STOP_ALL;
	options.on_held = on_held;
	options.on_hold = on_hold;
	options.on_held_arg = &told;
	assert_int_equal(target_open(pid, NULL, &target), 0);
	assert_int_equal(capture_open(target, &options, NULL, &capture), 0);
	assert_int_equal(capture_take(capture, NULL, &snap), 0);
	assert_true(told.anew >= 1);
	for (size_t i = 0; i < snap->threads.len; i++)
		held += snap->threads.data[i].capture == CAPTURE_HELD;
	assert_int_equal(told.threads, held);
	if (held)
		assert_int_equal(told.code, snap->maps.data[0].start);
	capture_close(capture);
	target_close(target);
	snapshot_destroy(snap);
	child_end(pid);
	close(order[0]);
	close(order[1]);
	return held ? told.anew : 0;
}

/* Before the hold, and before that of the other program. */
static void test_held_of_another_program(void **state)
{
	for (int i = 0; i < 300; i++)
		if (take_executing() >= 2)
			return;
	fail_msg("the child never executed in time");
}

/* A reader that wants a word of each thread. */
struct wanting {
	bool wants;
	uint64_t address;
	unsigned begun, refreshed, read;
	uint64_t last;
};

static bool begin_reading(void *arg, struct snapshot *snap)
{
	struct wanting *w = arg;

	assert_true(snap->maps.len);
	w->begun++;
	return w->wants;
}

static void refresh_reader(void *arg)
{
	((struct wanting *)arg)->refreshed++;
}

static void read_more(void *arg, pid_t tid, const struct user_regs *regs, struct mem *mem)
{
	struct wanting *w = arg;

	w->read++;
	assert_true(mem_read_exact(mem, w->address, &w->last, sizeof(w->last)));
}

static uint64_t wanted_word = UINT64_C(0x1122334455667788);

static struct snapshot *take_with_reader(pid_t pid, struct wanting *w)
{
	const struct thread_reader reader = {begin_reading, refresh_reader, read_more, w};
	struct capture_options options = defaults;
	struct target *target;
	struct capture *capture;
	struct snapshot *snap;
	struct err err = {0};

	options.source = SOURCE_PROC;
	options.reader = &reader;
	w->address = (uintptr_t)&wanted_word; /* the child is a copy of us */
	assert_int_equal(target_open(pid, NULL, &target), 0);
	if (capture_open(target, &options, &err, &capture) < 0 || capture_take(capture, &err, &snap) < 0)
		fail_msg("%s", err.msg);
	capture_close(capture);
	target_close(target);
	return snap;
}

/* What is read of a thread that sleeps or is held is kept, once, however often it had to be taken. */
static void check_reader(void (*body)(void))
{
	pid_t pid = child_start(body);
	struct wanting w = {.wants = true}, idle = {0};
	struct snapshot *snap = take_with_reader(pid, &w);
	size_t copies = 0;

	assert_int_equal(w.begun, 1);
	assert_true(w.refreshed >= 1 && w.read >= 1);
	assert_int_equal(w.last, wanted_word);
	for (size_t i = 0; i < snap->copies.len; i++)
		if (snap->copies.data[i].tid == pid)
			copies++;
	assert_int_equal(copies, 1);
	snapshot_destroy(snap);

	/* One that does not want this process is asked for nothing more. */
	snap = take_with_reader(pid, &idle);
	assert_int_equal(idle.begun, 1);
	assert_int_equal(idle.refreshed + idle.read, 0);
	snapshot_destroy(snap);
	child_end(pid);
}

static void test_reader_of_a_sleeper(void **state)
{
	check_reader(child_sleeps);
}

static void test_reader_of_a_spinner(void **state)
{
	check_reader(child_spins);
}

static void *rest(void *arg)
{
	pause();
	return arg;
}

static void child_has_a_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, rest, NULL);
	rest(NULL);
}

/* What lies above it is no stack: the C library's record of the thread, and its variables. */
static void test_stack_ends_at_the_descriptor(void **state)
{
	pid_t pid = child_start(child_has_a_thread);
	struct snapshot *snap = NULL;
	const struct snap_thread *t;

	for (int i = 0; i < 5000 && (!snap || snap->threads.len < 2 || snap->threads.data[1].capture != CAPTURE_ASLEEP); i++) {
		snapshot_destroy(snap);
		snap = take(pid, SOURCE_BPF, STOP_AUTO);
	}
	assert_int_equal(snap->threads.len, 2);
	t = &snap->threads.data[1];
	assert_true(t->tid_address > t->stack.start);
	assert_ptr_equal(maps_find(&snap->maps, t->tid_address), maps_find(&snap->maps, t->stack.start));
	assert_int_equal(t->stack.region_end, t->tid_address);
	assert_int_equal(t->stack.start + t->stack.len, t->tid_address);
	snapshot_destroy(snap);
	child_end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeper_bpf),  cmocka_unit_test(test_sleeper_proc), cmocka_unit_test(test_spinner_bpf),
		cmocka_unit_test(test_spinner_proc), cmocka_unit_test(test_stop_all),	  cmocka_unit_test(test_unmoved),
		cmocka_unit_test(test_registers_of_a_sleeper_that_ran),
		cmocka_unit_test(test_only_one_thread), cmocka_unit_test(test_held_of_another_program),
		cmocka_unit_test(test_reader_of_a_sleeper),
		cmocka_unit_test(test_reader_of_a_spinner),
		cmocka_unit_test(test_stack_ends_at_the_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
