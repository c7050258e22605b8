/* SPDX-License-Identifier: MIT */
#include "trace_child.h"

#include "trace/ptrace_walk.h"

/* This process stands for the one that is held: `peek` reads its memory. */
struct fixture {
	struct target *target;
	struct ptrace_walk walk;
};

static void start(struct fixture *f)
{
	*f = (struct fixture){0};
	assert_int_equal(target_open(getpid(), NULL, &f->target), 0);
	assert_int_equal(target_read_map(f->target, NULL), 0);
	f->walk.target = f->target;
}

static void finish(struct fixture *f)
{
	ptrace_walk_deinit(&f->walk);
	target_close(f->target);
}

/* Registers of a thread that is about to execute a function for the first time. */
static struct user_regs at(const struct fixture *f, void (*function)(void))
{
	const struct arch *arch = f->target->snap->arch;
	struct user_regs regs = {0};

	regs.v[arch->user_pc] = (uintptr_t)function;
	regs.v[arch->user_sp] = (uintptr_t)__builtin_frame_address(0);
	regs.valid = UINT64_C(1) << arch->user_pc | UINT64_C(1) << arch->user_sp;
	return regs;
}

static void walk_thread(struct fixture *f, pid_t tid, void (*function)(void))
{
	struct user_regs regs = at(f, function);

	ptrace_walk_thread(&f->walk, f->target->snap, tid, &regs, &f->target->memory.mem);
}

static void test_by_tid(void **state)
{
	struct raw_stack first = {0}, second = {0}, none = {0};
	struct fixture f;

	start(&f);
	f.walk.depth = 1;
	assert_int_equal(ptrace_walk_begin(&f.walk, f.target->snap, NULL), 0);
	assert_non_null(f.target->modules); /* nothing may be opened while threads are held */
	walk_thread(&f, 7, waits_inside);
	walk_thread(&f, 5, waits_outside);
	assert_true(ptrace_walk_take(&f.walk, 5, &second));
	assert_true(ptrace_walk_take(&f.walk, 7, &first));
	assert_int_equal(first.data[0].pc, (uintptr_t)waits_inside);
	assert_int_equal(second.data[0].pc, (uintptr_t)waits_outside);
	assert_int_equal(first.len, 1); /* as deep as it may be */
	assert_false(ptrace_walk_take(&f.walk, 6, &none));
	assert_false(ptrace_walk_take(&f.walk, 7, &none)); /* it was handed over */
	raw_stack_deinit(&first);
	raw_stack_deinit(&second);
	finish(&f);
}

/* It is held anew, perhaps with another program: nothing of before counts. */
static void test_begins_anew(void **state)
{
	struct raw_stack stack = {0};
	struct fixture f;

	start(&f);
	assert_int_equal(ptrace_walk_begin(&f.walk, f.target->snap, NULL), 0);
	walk_thread(&f, 7, waits_inside);
	walk_thread(&f, 8, waits_inside);
	assert_int_equal(ptrace_walk_begin(&f.walk, f.target->snap, NULL), 0);
	assert_false(ptrace_walk_take(&f.walk, 7, &stack));
	walk_thread(&f, 8, waits_outside);
	assert_false(ptrace_walk_take(&f.walk, 7, &stack));
	assert_true(ptrace_walk_take(&f.walk, 8, &stack));
	assert_int_equal(stack.data[0].pc, (uintptr_t)waits_outside);
	raw_stack_deinit(&stack);
	finish(&f);
}

static void test_nothing_to_walk_with(void **state)
{
	struct raw_stack stack = {0};
	struct user_regs unknown = {0};
	struct fixture f;

	start(&f);
	walk_thread(&f, 7, waits_inside); /* the files are not open */
	assert_false(ptrace_walk_take(&f.walk, 7, &stack));
	assert_int_equal(ptrace_walk_begin(&f.walk, f.target->snap, NULL), 0);
	ptrace_walk_thread(&f.walk, f.target->snap, 7, &unknown, &f.target->memory.mem);
	assert_false(ptrace_walk_take(&f.walk, 7, &stack));
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_tid),
		cmocka_unit_test(test_begins_anew),
		cmocka_unit_test(test_nothing_to_walk_with),
	};

	return cmocka_run_group_tests_name("ptrace_walk", tests, NULL, NULL);
}
