/* SPDX-License-Identifier: MIT */
#include "trace_child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "model/snapfile.h"
#include "proc/task_stat.h"
#include "sample.h"
#include "trace/tracing.h"

static const struct tracing_options defaults = {
	.capture = {.stack_size = 1 << 20, .stop_timeout_ms = 10000, .kernel_stacks = true},
};
static const struct tracing_names naming = {.native.demangle = true, .kernel = true};

static const struct frame *find(const struct stack *stack, const char *symbol)
{
	for (size_t i = 0; i < stack->len; i++)
		if (stack->data[i].symbol && strcmp(stack->data[i].symbol, symbol) == 0)
			return &stack->data[i];
	return NULL;
}

static struct trace *name(struct tracing *tracing)
{
	struct trace *trace = NULL;
	struct err err = {0};

	if (tracing_name(tracing, &naming, &err, &trace) != 0)
		fail_msg("%s", err.msg);
	assert_ptr_equal(trace->snap, tracing_snapshot(tracing));
	return trace;
}

static struct tracing *take(pid_t pid, const struct tracing_options *options)
{
	struct tracing *tracing = NULL;
	struct err err = {0};

	if (tracing_capture((struct process_id){.pid = pid}, options, monotonic_ns(), &err, &tracing) != 0)
		fail_msg("%s", err.msg);
	return tracing;
}

static void expect_waiting(const struct trace *trace)
{
	const struct trace_thread *t = &trace->threads.data[0];

	assert_int_equal(trace->threads.len, 1);
	if (!trace_is_complete(trace))
		fail_msg("%s: %s", stack_end_name(t->raw.end), t->raw.error);
	assert_non_null(find(t->user, "waits_inside"));
	assert_non_null(find(t->user, "waits_outside"));
	assert_non_null(find(t->user, "main"));
}

static void expect_sum(const struct trace_timings *t)
{
	assert_int_equal(t->setup_ns + t->capture_ns + t->unwind_ns + t->save_ns + t->symbolize_ns, t->total_ns);
}

/* What is named is all of the time. */
static void test_saved(void **state)
{
	struct trace_child child = trace_child_start(waits_outside);
	struct tracing *tracing = take(child.pid, &defaults);
	const struct trace *trace;

	trace_child_finish(&child);
	tracing_saved(tracing);
	trace = name(tracing);
	assert_true(trace->timings.setup_ns > 0);
	assert_true(trace->timings.save_ns > 0);
	expect_sum(&trace->timings);
	tracing_destroy(tracing);
}

/* All that needs the process is done when the capture is: names come from the files, which are open. */
static void test_live(void **state)
{
	struct trace_child child = trace_child_start(waits_outside);
	struct tracing *tracing = take(child.pid, &defaults);
	const struct trace *trace;

	trace_child_finish(&child);
	assert_int_equal(tracing_snapshot(tracing)->pid, child.pid);
	trace = name(tracing);
	expect_waiting(trace);
	assert_true(trace->timings.capture_ns > 0);
	assert_true(trace->timings.unwind_ns > 0);
	assert_true(trace->timings.symbolize_ns > 0);
	assert_int_equal(trace->timings.save_ns, 0);
	expect_sum(&trace->timings);
	tracing_destroy(tracing);
	tracing_destroy(NULL);
}

static void test_ptrace(void **state)
{
	struct trace_child child = trace_child_start(waits_outside);
	struct tracing_options options = defaults;
	struct tracing *tracing;
	const struct trace *trace;

	options.ptrace = true;
	options.capture.stop = STOP_ALL;
	tracing = take(child.pid, &options);
	trace = name(tracing);
	expect_waiting(trace);
	assert_string_equal(trace->snap->capture.method, "ptrace");
	tracing_destroy(tracing);
	trace_child_finish(&child);
}

static void test_depth(void **state)
{
	struct trace_child child = trace_child_start(waits_outside);
	struct tracing_options options = defaults;
	struct tracing *tracing;

	for (int ptrace = 0; ptrace < 2; ptrace++) {
		const struct trace *trace;

		options.depth = 1;
		options.ptrace = ptrace;
		options.capture.stop = ptrace ? STOP_ALL : STOP_AUTO;
		tracing = take(child.pid, &options);
		trace = name(tracing);
		assert_int_equal(trace->threads.data[0].raw.len, 1);
		assert_int_equal(trace->threads.data[0].raw.end, STACK_DEPTH_LIMIT);
		assert_false(trace_is_complete(trace));
		tracing_destroy(tracing);
	}
	trace_child_finish(&child);
}

/* The saved snapshot gives the same, without the process. */
static void test_replay(void **state)
{
	struct trace_child child = trace_child_start(waits_outside);
	struct tracing *live = take(child.pid, &defaults), *replayed = NULL;
	struct snapshot *back = NULL;
	const struct trace *a, *b;
	FILE *file = tmpfile();

	assert_int_equal(snapfile_write(tracing_snapshot(live), file, NULL), 0);
	trace_child_finish(&child);
	rewind(file);
	assert_int_equal(snapfile_read(file, NULL, &back), 0);
	fclose(file);
	assert_int_equal(tracing_replay(back, &defaults, monotonic_ns(), NULL, &replayed), 0);
	assert_ptr_equal(tracing_snapshot(replayed), back);
	a = name(live);
	b = name(replayed);
	expect_waiting(b);
	assert_int_equal(a->threads.data[0].user->len, b->threads.data[0].user->len);
	for (size_t i = 0; i < a->threads.data[0].user->len; i++) {
		const struct frame *x = &a->threads.data[0].user->data[i], *y = &b->threads.data[0].user->data[i];

		assert_int_equal(x->address, y->address);
		assert_int_equal(!x->symbol, !y->symbol);
		if (x->symbol)
			assert_string_equal(x->symbol, y->symbol);
	}
	tracing_destroy(live);
	tracing_destroy(replayed);
}

/* What has no process and no files is data with reasons. */
static void test_replay_without_files(void **state)
{
	struct snapshot *snap = sample_snapshot();
	struct tracing *tracing = NULL;
	const struct trace *trace;

	snap->replayed = true;
	assert_int_equal(tracing_replay(snap, &defaults, 0, NULL, &tracing), 0);
	trace = name(tracing);
	assert_int_equal(trace->threads.len, SAMPLE_THREADS);
	assert_false(trace_is_complete(trace));
	for (size_t i = 0; i < trace->threads.len; i++) {
		assert_ptr_equal(trace->threads.data[i].thread, &snap->threads.data[i]);
		assert_non_null(trace->threads.data[i].user);
		if (trace->threads.data[i].raw.end != STACK_COMPLETE)
			assert_true(trace->threads.data[i].raw.error[0]);
	}
	assert_int_equal(trace->snap->notes.len, 1); /* the capture's own are not changed */
	tracing_destroy(tracing);
}

static void test_no_kernel_stacks(void **state)
{
	static const struct tracing_names user_only = {.native.demangle = true};
	struct snapshot *snap = sample_snapshot();
	struct tracing *tracing = NULL;
	struct trace *trace = NULL;

	snap->replayed = true;
	assert_int_equal(tracing_replay(snap, &defaults, 0, NULL, &tracing), 0);
	assert_int_equal(tracing_name(tracing, &user_only, NULL, &trace), 0);
	for (size_t i = 0; i < trace->threads.len; i++)
		assert_null(trace->threads.data[i].kernel);
	tracing_destroy(tracing);

	snap = sample_snapshot();
	snap->replayed = true;
	assert_int_equal(tracing_replay(snap, &defaults, 0, NULL, &tracing), 0);
	trace = name(tracing);
	assert_int_equal(trace->threads.data[0].kernel->len, 3);
	assert_int_equal(trace->threads.data[5].kernel->len, 2);
	tracing_destroy(tracing);
}

static int tid_pipe[2];

static void *tell_tid(void *arg)
{
	pid_t tid = gettid();

	if (write(tid_pipe[1], &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	child_sleeps();
	return NULL;
}

static void with_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, tell_tid, NULL) != 0)
		_exit(1);
	child_sleeps();
}

/* Who gives a thread for a process is told how to ask for it. */
static void test_thread_of_a_process(void **state)
{
	struct tracing *tracing = NULL;
	struct err err = {0};
	char wanted[64];
	pid_t pid, tid = 0;

	assert_int_equal(pipe(tid_pipe), 0);
	pid = child_start(with_thread);
	assert_int_equal(read(tid_pipe[0], &tid, sizeof(tid)), (ssize_t)sizeof(tid));
	assert_int_equal(tracing_capture((struct process_id){.pid = tid}, &defaults, 0, &err, &tracing), -EINVAL);
	assert_null(tracing);
	snprintf(wanted, sizeof(wanted), "use `stakeout %d -t %d`", (int)pid, (int)tid);
	assert_non_null(strstr(err.msg, wanted));
	child_end(pid);
	close(tid_pipe[0]);
	close(tid_pipe[1]);
}

static void test_ended(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct tracing *tracing = NULL;
	struct err err = {0};

	child_end(pid);
	assert_int_equal(tracing_capture((struct process_id){.pid = pid}, &defaults, 0, &err, &tracing), -ESRCH);
	assert_true(err.msg[0]);
	assert_null(tracing);
}

/* One that was found and has ended; the number is another one's by now. */
static void test_number_used_again(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct process_id id = {.pid = pid};
	struct tracing *tracing = NULL;
	struct task_stat stat;
	struct err err = {0};
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	assert_int_equal(task_stat_read(AT_FDCWD, path, &stat), 0);
	id.start_time = stat.start_time - 1;
	assert_int_equal(tracing_capture(id, &defaults, 0, &err, &tracing), -ESRCH);
	assert_non_null(strstr(err.msg, "has ended"));
	assert_null(tracing);
	id.start_time = stat.start_time;
	assert_int_equal(tracing_capture(id, &defaults, 0, &err, &tracing), 0);
	tracing_destroy(tracing);
	child_end(pid);
}

static void expect_busy(void (*body)(void), char state, const cpu_set_t *wanted)
{
	pid_t pid = child_start(body);
	struct tracing *tracing;
	struct task_stat stat;
	char path[32];
	cpu_set_t busy;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	do { /* it has told that it is there, but may not be asleep yet */
		assert_int_equal(task_stat_read(AT_FDCWD, path, &stat), 0);
		sched_yield();
	} while (stat.state != state);
	tracing = take(pid, &defaults);
	tracing_find_busy(tracing, &busy);
	assert_true(CPU_EQUAL(&busy, wanted));
	name(tracing);
	tracing_destroy(tracing);
	child_end(pid);
}

static void test_busy_cpus(void **state)
{
	cpu_set_t own, one, none;
	int cpu = CPU_SETSIZE - 1;

	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	while (!CPU_ISSET(cpu, &own))
		cpu--;
	CPU_ZERO(&none);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0); /* so will be the child's */
	expect_busy(child_spins, 'R', &one);
	expect_busy(child_sleeps, 'S', &none);
	assert_int_equal(sched_setaffinity(0, sizeof(own), &own), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_saved),
		cmocka_unit_test(test_ptrace),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_replay_without_files),
		cmocka_unit_test(test_no_kernel_stacks),
		cmocka_unit_test(test_thread_of_a_process),
		cmocka_unit_test(test_ended),
		cmocka_unit_test(test_number_used_again),
		cmocka_unit_test(test_busy_cpus),
	};

	return cmocka_run_group_tests_name("tracing", tests, NULL, NULL);
}
