/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <string.h>

#include "arch/arch.h"
#include "offcpu/sleeping.h"
#include "proc/task.h"

static int order[2]; /* a pipe: what is written there makes the child execute another program */

static void child_executes(void)
{
	char byte;

	if (read(order[0], &byte, 1) == 1)
		execlp("sleep", "sleep", "1000", NULL);
}

/* The thread as /proc tells it, once it sleeps elsewhere than before. */
static struct snap_thread wait_for_sleep(const struct process *process, uint64_t not_at)
{
	struct snap_thread thread = {.status = THREAD_CAPTURED, .capture = CAPTURE_ASLEEP, .tid = process->pid, .state = 'S'};
	const struct arch *arch = arch_host();
	struct task_syscall at;
	char state = 0;

	for (int i = 0; i < 5000; i++) {
		int rc = task_syscall(process, process->pid, &at);

		if (rc == -EACCES || rc == -EPERM)
			skip();
		if (rc == 0 && !at.running && at.pc && at.pc != not_at && task_state(process, process->pid, &state) == 0 &&
		    state == 'S')
			break;
		usleep(1000);
	}
	assert_int_equal(state, 'S');
	thread.regs.v[arch->user_pc] = at.pc;
	thread.regs.v[arch->user_sp] = at.sp;
	thread.regs.valid = UINT64_C(1) << arch->user_pc | UINT64_C(1) << arch->user_sp;
	return thread;
}

/* In one look nobody asks again which program it is: here there would be no answer. */
static void test_asked_once_in_a_look(void **state)
{
	struct sleeping *sleeping = sleeping_create(true, NULL);
	struct sleeping_process known = {0};
	struct sleeping_stack stack = {0};
	struct sleeping_files *files;
	struct snap_thread thread;
	struct process process, mute;
	pid_t pid;

	assert_int_equal(pipe(order), 0);
	pid = child_start(child_executes);
	assert_int_equal(process_open(pid, NULL, &process), 0);
	thread = wait_for_sleep(&process, 0);
	sleeping_walk(sleeping, &known, &process, &thread, &stack);
	assert_true(stack.frames.len > 0);
	files = known.files;
	assert_non_null(files);

	mute = process;
	mute.mm_fd = -1;
	sleeping_walk(sleeping, &known, &mute, &thread, &stack);
	assert_true(stack.frames.len > 0);
	assert_ptr_equal(known.files, files);
	sleeping_end_look(&known);

	sleeping_walk(sleeping, &known, &process, &thread, &stack);
	assert_ptr_equal(known.files, files);
	sleeping_end_look(&known);
	sleeping_end_look(&known);

	/* In the next one it is another program. */
	assert_int_equal(write(order[1], "x", 1), 1);
	thread = wait_for_sleep(&process, thread.regs.v[arch_host()->user_pc]);
	sleeping_walk(sleeping, &known, &process, &thread, &stack);
	assert_ptr_not_equal(known.files, files);
	assert_true(stack.frames.len > 0);

	sleeping_forget(sleeping, &known);
	sleeping_stack_deinit(&stack);
	sleeping_destroy(sleeping);
	process_close(&process);
	child_end(pid);
	close(order[0]);
	close(order[1]);
}

/* Why it cannot be looked at is found out once, and told of every thread. */
static void test_gone(void **state)
{
	struct sleeping *sleeping = sleeping_create(true, NULL);
	struct sleeping_process known = {0};
	struct sleeping_stack stack = {0};
	struct snap_thread thread;
	struct process process;
	pid_t pid = child_start(child_sleeps);

	assert_int_equal(process_open(pid, NULL, &process), 0);
	thread = wait_for_sleep(&process, 0);
	child_end(pid);
	for (int i = 0; i < 2; i++) {
		sleeping_walk(sleeping, &known, &process, &thread, &stack);
		assert_non_null(strstr(stack.error, "has ended"));
		assert_int_equal(stack.frames.len, 0);
	}
	sleeping_forget(sleeping, &known);
	sleeping_stack_deinit(&stack);
	sleeping_destroy(sleeping);
	process_close(&process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asked_once_in_a_look),
		cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
