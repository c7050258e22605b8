/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "proc/task.h"

static void wait_for_state(const struct process *p, char want)
{
	char got = 0;

	for (int i = 0; i < 5000 && got != want; i++) {
		assert_int_equal(task_state(p, p->pid, &got), 0);
		usleep(1000);
	}
	assert_int_equal(got, want);
}

static void test_sleeping(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct task_status status;
	struct task_syscall sc;
	struct process_info info;
	struct process p;
	uint64_t start;

	assert_int_equal(process_open(pid, NULL, &p), 0);
	wait_for_state(&p, 'S');
	assert_int_equal(process_info(&p, &info), 0);
	assert_int_equal(task_start(&p, pid, &start), 0);
	assert_int_equal(start, info.start_time);
	assert_int_equal(task_status(&p, pid, &status), 0);
	assert_string_equal(status.name, program_invocation_short_name);
	assert_int_equal(status.state, 'S');
	assert_int_equal(status.tracer, 0);
	assert_true(status.nvcsw > 0);
	if (task_syscall(&p, pid, &sc) == -EACCES)
		skip();
	assert_false(sc.running);
	assert_true(sc.in_syscall);
#ifdef SYS_pause
	assert_int_equal(sc.nr, SYS_pause);
#else
	assert_int_equal(sc.nr, SYS_ppoll);
#endif
	assert_true(sc.sp && sc.pc);
	process_close(&p);
	child_end(pid);
}

static void test_running(void **state)
{
	pid_t pid = child_start(child_spins);
	struct task_syscall sc;
	struct process p;

	assert_int_equal(process_open(pid, NULL, &p), 0);
	wait_for_state(&p, 'R');
	if (task_syscall(&p, pid, &sc) == -EACCES)
		skip();
	assert_true(sc.running);
	process_close(&p);
	child_end(pid);
}

static void test_kernel_stack(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct arena *arena = arena_create();
	const char *text[64];
	struct process p;
	int n;

	assert_int_equal(process_open(pid, NULL, &p), 0);
	wait_for_state(&p, 'S');
	n = task_kernel_stack(&p, pid, arena, text, 64);
	if (n < 0) {
		print_message("skipped: /proc/PID/task/TID/stack needs CAP_SYS_ADMIN\n");
		skip();
	}
	assert_true(n >= 2);
	for (int i = 0; i < n; i++)
		assert_non_null(strstr(text[i], "+0x"));
	assert_int_equal(task_kernel_stack(&p, pid, arena, text, 1), 1);
	arena_destroy(arena);
	process_close(&p);
	child_end(pid);
}

static void test_gone(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct task_status status;
	struct process p;
	uint64_t start;
	char letter;

	assert_int_equal(process_open(pid, NULL, &p), 0);
	child_end(pid);
	assert_true(task_start(&p, pid, &start) < 0);
	assert_true(task_status(&p, pid, &status) < 0);
	assert_true(task_state(&p, pid, &letter) < 0);
	process_close(&p);
}

static void test_numbers(void **state)
{
	struct task_numbers numbers = {0};
	struct process p;

	assert_int_equal(process_open(getpid(), NULL, &p), 0);
	assert_int_equal(task_numbers_list(&p, &numbers), 0);
	assert_int_equal(numbers.ours.len, 1);
	assert_int_equal(task_numbers_find(&numbers, numbers.own.data[0]), getpid());
	assert_int_equal(task_numbers_find(&numbers, 0), 0);
	assert_int_equal(task_numbers_find(&numbers, numbers.own.data[0] + 1), 0);
	task_numbers_deinit(&numbers);
	process_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeping),
		cmocka_unit_test(test_running),
		cmocka_unit_test(test_kernel_stack),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
