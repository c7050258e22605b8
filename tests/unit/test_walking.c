/* SPDX-License-Identifier: MIT */
#include "trace_child.h"

#include <errno.h>
#include <stdio.h>

#include "capture/take.h"
#include "model/snapfile.h"
#include "trace/walking.h"

struct fixture {
	struct trace_child child;
	struct target *target;
	struct capture *capture;
	struct snapshot *snap;
	struct runtimes runtimes;
	struct trace trace;
};

/* Not pushed off its CPU on its way to sleep: it would run once more. */
static bool is_captured_as(const struct snapshot *snap, enum thread_capture how)
{
	return snap && snap->threads.len == 1 && snap->threads.data[0].capture == how &&
	       (how != CAPTURE_ASLEEP || snap->threads.data[0].state == 'S');
}

static void start(struct fixture *f, enum source_choice source, enum stop_mode stop)
{
	const struct capture_options options = {
		.source = source, .stop = stop, .stack_size = 1 << 20, .stop_timeout_ms = 10000};
	enum thread_capture how = stop == STOP_ALL ? CAPTURE_HELD : CAPTURE_ASLEEP;
	struct err err = {0};

	*f = (struct fixture){.child = trace_child_start(waits_outside)};
	assert_int_equal(target_open(f->child.pid, NULL, &f->target), 0);
	assert_int_equal(capture_open(f->target, &options, NULL, &f->capture), 0);
	for (int i = 0; i < 5000 && !is_captured_as(f->snap, how); i++) { /* it may be on its way to sleep */
		snapshot_destroy(f->snap);
		if (capture_take(f->capture, &err, &f->snap) < 0)
			fail_msg("%s", err.msg);
	}
	assert_true(is_captured_as(f->snap, how));
	target_set_snapshot(f->target, f->snap);
	assert_int_equal(target_open_files(f->target, NULL, NULL), 0);
	assert_true(runtimes_init(&f->runtimes, f->target));
}

static void finish(struct fixture *f)
{
	trace_deinit(&f->trace);
	runtimes_deinit(&f->runtimes);
	capture_close(f->capture);
	target_close(f->target);
	snapshot_destroy(f->snap);
	trace_child_finish(&f->child);
}

static const struct raw_stack *walk(struct fixture *f, struct ptrace_walk *walked)
{
	const struct walking walking = {
		.target = f->target, .capture = f->capture, .walked = walked, .runtimes = &f->runtimes};
	struct err err = {0};

	if (walking_run(&walking, &f->trace, &err) != 0)
		fail_msg("%s", err.msg);
	assert_int_equal(f->trace.threads.len, 1);
	assert_ptr_equal(f->trace.threads.data[0].thread, &f->snap->threads.data[0]);
	return &f->trace.threads.data[0].raw;
}

/* The child is this program: its functions are where ours are. */
static bool is_in(const struct raw_stack *raw, void (*function)(void))
{
	for (size_t i = 0; i < raw->len; i++)
		if (raw->data[i].pc - (uintptr_t)function < 256)
			return true;
	return false;
}

static void expect_whole(const struct raw_stack *raw)
{
	if (raw->end != STACK_COMPLETE)
		fail_msg("%s: %s", stack_end_name(raw->end), raw->error);
	assert_true(is_in(raw, waits_inside));
	assert_true(is_in(raw, waits_outside));
	assert_int_equal(raw->missing, 0);
}

static void test_sleeper(void **state)
{
	struct fixture f;

	start(&f, SOURCE_AUTO, STOP_AUTO);
	expect_whole(walk(&f, NULL));
	finish(&f);
}

/* As when a stack goes on in another mapping: what was copied of it ends before the walk does. */
static void cut_stack(struct fixture *f)
{
	struct mem_copy *stack = &f->snap->threads.data[0].stack;

	assert_true(stack->len > 32);
	stack->len = 16;
	stack->region_end = stack->start + stack->len;
}

static void check_missing_memory_is_asked_for(enum source_choice source)
{
	const struct raw_stack *raw;
	struct fixture f;
	uint64_t before;

	start(&f, source, STOP_AUTO);
	cut_stack(&f);
	before = f.snap->asked_bytes;
	raw = walk(&f, NULL);
	expect_whole(raw);
	/* Where the child's code was compiled so that a walk needs more registers than /proc has, it was held for them. */
	if (f.snap->threads.data[0].capture != CAPTURE_HELD) {
		assert_true(f.snap->copies.len >= 1);
		assert_int_equal(f.snap->copies.data[0].tid, f.child.pid);
		assert_true(f.snap->asked_bytes > before);
	}
	finish(&f);
}

static void test_missing_memory_bpf(void **state)
{
	struct capture_options options = {.source = SOURCE_BPF, .stack_size = 1 << 20};
	struct capture *capture;
	struct target *target;
	struct err err = {0};
	int rc;

	assert_int_equal(target_open(getpid(), NULL, &target), 0);
	rc = capture_open(target, &options, &err, &capture);
	if (rc == 0)
		capture_close(capture);
	target_close(target);
	if (rc < 0) {
		print_message("skipped: %s\n", err.msg);
		skip();
	}
	check_missing_memory_is_asked_for(SOURCE_BPF);
}

static void test_missing_memory_proc(void **state)
{
	check_missing_memory_is_asked_for(SOURCE_PROC);
}

/* A saved snapshot has what was asked for, and is walked as the process was. */
static void test_replay_has_what_was_asked_for(void **state)
{
	const struct raw_stack *raw;
	struct snapshot *back = NULL;
	struct target *saved;
	struct trace again = {0};
	struct fixture f;
	struct walking walking = {0};
	FILE *file = tmpfile();

	start(&f, SOURCE_AUTO, STOP_AUTO);
	cut_stack(&f);
	raw = walk(&f, NULL);
	assert_int_equal(snapfile_write(f.snap, file, NULL), 0);
	rewind(file);
	assert_int_equal(snapfile_read(file, NULL, &back), 0);
	fclose(file);
	assert_int_equal(back->copies.len, f.snap->copies.len);
	saved = target_open_saved(back);
	assert_int_equal(target_open_files(saved, NULL, NULL), 0);
	walking = (struct walking){.target = saved, .runtimes = &f.runtimes};
	assert_int_equal(walking_run(&walking, &again, NULL), 0);
	assert_int_equal(again.threads.len, 1);
	assert_int_equal(again.threads.data[0].raw.end, raw->end);
	assert_int_equal(again.threads.data[0].raw.len, raw->len);
	for (size_t i = 0; i < raw->len; i++)
		assert_int_equal(again.threads.data[0].raw.data[i].pc, raw->data[i].pc);
	trace_deinit(&again);
	target_close(saved);
	snapshot_destroy(back);
	finish(&f);
}

/* Who has run since it was captured: more of its memory would be of another instant. */
static void test_runner_is_not_asked(void **state)
{
	const struct raw_stack *raw;
	struct fixture f;

	start(&f, SOURCE_AUTO, STOP_AUTO);
	cut_stack(&f);
	trace_child_run(&f.child);
	raw = walk(&f, NULL);
	assert_int_not_equal(raw->end, STACK_COMPLETE);
	assert_int_not_equal(raw->missing, 0);
	assert_int_equal(f.snap->copies.len, 0);
	finish(&f);
}

static void test_held_is_not_asked(void **state)
{
	const struct raw_stack *raw;
	struct fixture f;

	start(&f, SOURCE_AUTO, STOP_ALL);
	cut_stack(&f);
	raw = walk(&f, NULL);
	assert_int_not_equal(raw->end, STACK_COMPLETE);
	assert_int_not_equal(raw->missing, 0);
	assert_int_equal(f.snap->copies.len, 0);
	finish(&f);
}

/* A pointer into nothing is not asked for, and again and again neither. */
static void test_unmapped_memory_is_not_asked_for(void **state)
{
	const struct raw_stack *raw;
	struct fixture f;
	uint64_t before;

	start(&f, SOURCE_AUTO, STOP_AUTO);
	cut_stack(&f);
	for (size_t i = 0; i < f.snap->maps.len; i++) /* the map that was taken has no stack */
		if (strcmp(f.snap->maps.data[i].path, "[stack]") == 0)
			f.snap->maps.data[i].start = f.snap->maps.data[i].end;
	before = f.snap->asked_bytes;
	raw = walk(&f, NULL);
	assert_int_not_equal(raw->end, STACK_COMPLETE);
	assert_int_equal(f.snap->copies.len, 0);
	assert_int_equal(f.snap->asked_bytes, before);
	finish(&f);
}

/* What was walked already, while the process was held, is not walked again. */
static void test_walked_stacks(void **state)
{
	struct ptrace_walk walked = {0};
	struct raw_stack known = {0};
	const struct raw_stack *raw;
	struct fixture f;
	bool created;

	start(&f, SOURCE_AUTO, STOP_ALL);
	for (uint64_t i = 0; i < 2; i++)
		assert_true(vec_push(&known, (struct raw_frame){.pc = 0x1000 + i}));
	*u64map_put(&walked.by_tid, (uint64_t)f.child.pid, &created) = 0;
	assert_true(vec_push(&walked.stacks, known));
	raw = walk(&f, &walked);
	assert_int_equal(raw->len, 2);
	assert_int_equal(raw->data[0].pc, 0x1000);
	assert_int_equal(raw->data[1].pc, 0x1001);
	assert_null(walked.stacks.data[0].data); /* taken over */
	ptrace_walk_deinit(&walked);
	finish(&f);
}

/* Without one of a thread it is walked from the snapshot. */
static void test_no_walked_stack(void **state)
{
	struct ptrace_walk walked = {0};
	struct fixture f;

	start(&f, SOURCE_AUTO, STOP_ALL);
	expect_whole(walk(&f, &walked));
	ptrace_walk_deinit(&walked);
	finish(&f);
}

static bool add_frame(void *state, const struct snapshot *snap, const struct snap_thread *thread,
		      struct raw_stack *raw)
{
	return *(const bool *)state &&
	       vec_push(&raw->runtime, (struct runtime_frame){.code = raw->len, .place = (uint64_t)thread->tid});
}

/* Runtimes look at a stack that is walked, once. */
static void test_frames_of_runtimes(void **state)
{
	static const struct runtime_ops ops = {.name = "fake", .frames = add_frame};
	struct walking walking;
	const struct raw_stack *raw;
	struct trace other = {0};
	struct fixture f;
	bool ok = true;

	start(&f, SOURCE_AUTO, STOP_AUTO);
	cut_stack(&f);
	assert_true(vec_push(&f.runtimes, (struct runtime){.ops = &ops, .state = &ok}));
	raw = walk(&f, NULL);
	assert_int_equal(raw->runtime.len, 1);
	assert_int_equal(raw->runtime.data[0].code, raw->len);
	assert_int_equal(raw->runtime.data[0].place, f.child.pid);

	ok = false; /* memory is exhausted */
	walking = (struct walking){.target = f.target, .capture = f.capture, .runtimes = &f.runtimes};
	assert_int_equal(walking_run(&walking, &other, NULL), -ENOMEM);
	trace_deinit(&other);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeper),
		cmocka_unit_test(test_missing_memory_bpf),
		cmocka_unit_test(test_missing_memory_proc),
		cmocka_unit_test(test_replay_has_what_was_asked_for),
		cmocka_unit_test(test_runner_is_not_asked),
		cmocka_unit_test(test_held_is_not_asked),
		cmocka_unit_test(test_unmapped_memory_is_not_asked_for),
		cmocka_unit_test(test_walked_stacks),
		cmocka_unit_test(test_no_walked_stack),
		cmocka_unit_test(test_frames_of_runtimes),
	};

	return cmocka_run_group_tests_name("walking", tests, NULL, NULL);
}
