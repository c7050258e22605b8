/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <stdio.h>
#include <string.h>

#include "arch/arch.h"
#include "kernel/task_iter.h"
#include "proc/task.h"

static char letter_of(uint32_t state, uint32_t exit_state)
{
	struct task_record record = {.state = state, .exit_state = exit_state};

	return task_record_state(&record);
}

static void test_state_letters(void **state)
{
	assert_int_equal(letter_of(0, 0), 'R');
	assert_int_equal(letter_of(1, 0), 'S');
	assert_int_equal(letter_of(2, 0), 'D');
	assert_int_equal(letter_of(0x102, 0), 'D'); /* killable */
	assert_int_equal(letter_of(4, 0), 'T');
	assert_int_equal(letter_of(8, 0), 't');
	assert_int_equal(letter_of(0, 16), 'X');
	assert_int_equal(letter_of(0, 32), 'Z');
	assert_int_equal(letter_of(0x402, 0), 'I');
}

/* What the iterator says of a sleeping child is what /proc says. */
static void test_agrees_with_proc(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct task_iter_request request = {.kernel_stacks = true};
	const struct arch *arch = arch_host();
	const struct task_record *record;
	struct task_status status;
	struct task_syscall sc;
	struct err err = {0};
	struct task_iter *iter;
	struct process p;
	const __u64 *kernel;
	char letter = 0;
	size_t pos = 0;

	if (task_iter_create(pid, &err, &iter) < 0) {
		print_message("skipped: %s\n", err.msg);
		child_end(pid);
		skip();
	}
	assert_int_equal(process_open(pid, NULL, &p), 0);
	for (int i = 0; i < 5000 && letter != 'S'; i++, usleep(1000))
		assert_int_equal(task_state(&p, pid, &letter), 0);
	assert_int_equal(task_iter_pass(iter, &request, &err), 0);
	assert_int_equal(task_status(&p, pid, &status), 0);
	assert_int_equal(task_syscall(&p, pid, &sc), 0);

	record = task_iter_next(iter, &pos, &kernel);
	assert_non_null(record);
	assert_int_equal(record->tid, pid);
	assert_int_equal(task_record_state(record), 'S');
	assert_int_equal(record->flags & TASK_ON_CPU, 0);
	assert_true(record->flags & TASK_HAS_REGS);
	assert_int_equal(record->nvcsw, status.nvcsw);
	assert_int_equal(record->nivcsw, status.nivcsw);
	assert_int_equal(record->syscall_nr, sc.nr);
	assert_int_equal(record->syscall_arg0, sc.args[0]);
	assert_int_equal(record->regs[arch->user_sp], sc.sp);
	assert_int_equal(record->regs[arch->user_pc], sc.pc);
	assert_true(record->nkernel >= 2);
	for (unsigned i = 0; i < record->nkernel; i++)
		assert_true(kernel[i] >> 63);
	assert_null(task_iter_next(iter, &pos, &kernel));

	request.counters_only = true;
	pos = 0;
	assert_int_equal(task_iter_pass(iter, &request, &err), 0);
	record = task_iter_next(iter, &pos, &kernel);
	assert_non_null(record);
	assert_int_equal(record->nkernel, 0);
	assert_int_equal(record->flags & TASK_HAS_REGS, 0);
	assert_int_equal(record->nvcsw, status.nvcsw);

	request.only_tid = pid + 1;
	pos = 0;
	assert_int_equal(task_iter_pass(iter, &request, &err), 0);
	assert_null(task_iter_next(iter, &pos, &kernel));
	task_iter_destroy(iter);
	process_close(&p);
	child_end(pid);
}

static void assert_shows(struct task_iter *iter, pid_t pid)
{
	const struct task_record *record;
	const __u64 *kernel;
	struct err err = {0};
	size_t pos = 0;

	if (task_iter_pass(iter, &(struct task_iter_request){0}, &err) < 0)
		fail_msg("%s", err.msg);
	record = task_iter_next(iter, &pos, &kernel);
	assert_non_null(record);
	assert_int_equal(record->tgid, pid);
	assert_null(task_iter_next(iter, &pos, &kernel));
}

/* Two processes by one program, in turn; and the second when the first is not looked at any more. */
static void test_beside_another(void **state)
{
	pid_t first = child_start(child_sleeps), second = child_start(child_sleeps);
	struct task_iter *one, *other;
	struct err err = {0};

	if (task_iter_create(first, &err, &one) < 0) {
		print_message("skipped: %s\n", err.msg);
		child_end(first);
		child_end(second);
		skip();
	}
	assert_int_equal(task_iter_create_beside(one, second, &err, &other), 0);
	for (int i = 0; i < 3; i++) {
		assert_shows(one, first);
		assert_shows(other, second);
	}
	task_iter_destroy(one);
	assert_shows(other, second);
	task_iter_destroy(other);
	child_end(first);
	child_end(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state_letters),
		cmocka_unit_test(test_agrees_with_proc),
		cmocka_unit_test(test_beside_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
