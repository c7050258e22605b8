/* SPDX-License-Identifier: MIT */
/*
 * What some kernels do not tell. How often a thread got a CPU, by those that do not count: they have no such counter,
 * or leave it at 0. And whole processes, by those that hide them from BPF.
 */
#include "child.h"
#include "scratch.h"

#include <errno.h>
#include <string.h>

#include "capture/observer.h"
#include "fake_iter.h"

static struct observation pass(struct observer *observer)
{
	const struct observe_request counters = {.counters_only = true};
	struct observations seen = {0};
	struct observation o;

	assert_int_equal(observer->observe(observer, &counters, NULL, &seen), 0);
	assert_int_equal(seen.len, 1);
	o = seen.data[0];
	vec_deinit(&seen);
	return o;
}

static void test_bpf(void **state)
{
	struct task_record *record = &fake_iter.records[0];
	struct process process;
	struct observer *observer;

	*record = (struct task_record){.tgid = (uint32_t)getpid(), .tid = (uint32_t)getpid(), .nvcsw = 3};
	fake_iter.n = 1;
	assert_int_equal(process_open(getpid(), NULL, &process), 0);
	assert_int_equal(observer_bpf_create(&process, NULL, &observer), 0);
	assert_false(pass(observer).has_runs);
	record->flags = TASK_HAS_RUNS;
	assert_false(pass(observer).has_runs);
	record->runs = 7;
	assert_true(pass(observer).has_runs);
	assert_int_equal(pass(observer).runs, 7);
	observer->destroy(observer);
	process_close(&process);
}

static void test_proc(void **state)
{
	struct process process = {.pid = 5, .dir_fd = -1, .mm_fd = -1};
	struct observer *observer;
	struct scratch s;

	scratch_init(&s);
	scratch_run(&s, "mkdir 5");
	scratch_text(&s, "5/status",
		     "Name:\tit\nState:\tS (sleeping)\nTracerPid:\t0\n"
		     "voluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t1\n");
	process.task_fd = scratch_open(&s, ".", O_RDONLY | O_DIRECTORY);
	assert_int_equal(observer_proc_create(&process, NULL, &observer), 0);
	assert_false(pass(observer).has_runs);
	scratch_text(&s, "5/schedstat", "0 0 0\n");
	assert_false(pass(observer).has_runs);
	assert_int_equal(pass(observer).cpu_ns, -1);
	assert_false(pass(observer).running);
	scratch_text(&s, "5/syscall", "running\n");
	assert_true(pass(observer).running); /* it is about to sleep, and no count could tell */
	scratch_text(&s, "5/schedstat", "1000 2000 7\n");
	assert_true(pass(observer).has_runs);
	assert_int_equal(pass(observer).runs, 7);
	assert_int_equal(pass(observer).cpu_ns, 1000);
	observer->destroy(observer);
	process_close(&process);
	scratch_deinit(&s);
}

/* One that is hidden is told from one that has ended. */
static void test_hidden(void **state)
{
	const struct observe_request all = {0};
	struct observations seen = {0};
	struct process process;
	struct observer *observer;
	struct err err = {0};
	pid_t pid = child_start(child_sleeps);

	fake_iter.n = 0;
	assert_int_equal(process_open(pid, NULL, &process), 0);
	assert_int_equal(observer_bpf_create(&process, NULL, &observer), 0);
	assert_int_equal(observer->observe(observer, &all, &err, &seen), -ENOENT);
	assert_non_null(strstr(err.msg, "iterator does not list process"));
	child_end(pid);
	assert_int_equal(observer->observe(observer, &all, &err, &seen), -ESRCH);
	assert_non_null(strstr(err.msg, "has ended"));
	observer->destroy(observer);
	process_close(&process);
	vec_deinit(&seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bpf),
		cmocka_unit_test(test_proc),
		cmocka_unit_test(test_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
