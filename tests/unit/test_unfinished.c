/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "fake_iter.h"
#include "fake_probe.h"
#include "offcpu/record/unfinished.h"

bool offcpu_probe_is_watched(const struct offcpu_probe *probe, pid_t tgid)
{
	return true;
}

enum { PID = 10, TID = 11, RUNS = 7 };

struct fixture {
	struct offcpu_probe probe;
	struct tables *tables;
	struct waits *waits;
	struct unfinished *unfinished;
};

static void start(struct fixture *f, struct task_record record)
{
	const struct unfinished_options options = {.kernel_stacks = true};
	const struct waits_options waits = {.max_rows = 10};

	record.tgid = PID;
	record.tid = TID;
	record.nkernel = 2;
	fake_iter.records[0] = record;
	fake_iter.n = 1;
	fake_probe_init(&f->probe);
	f->tables = tables_create(&f->probe);
	assert_non_null(f->tables);
	f->waits = waits_create(f->tables, &waits);
	assert_non_null(f->waits);
	assert_int_equal(unfinished_read(&f->probe, f->tables, &options, NULL, &f->unfinished), 0);
}

static void finish(struct fixture *f)
{
	unfinished_destroy(f->unfinished);
	waits_destroy(f->waits);
	tables_destroy(f->tables);
	fake_probe_deinit(&f->probe);
}

/* That of a wait which is still open; the thread has got a CPU so often by then. */
static const struct wait_stack *stack_of(struct fixture *f, uint32_t tid, uint64_t runs)
{
	struct offcpu_open open = {.wait = {.kind = OFFCPU_WAIT,
					    .flags = OFFCPU_UNFINISHED,
					    .key = {.tgid = PID, .tid = tid, .state = OFFCPU_SLEEPING},
					    .duration_ns = 100},
				   .runs = runs};
	const struct wait_row *row;

	unfinished_add_stack(f->unfinished, &open, f->waits, &open.wait);
	row = waits_add_wait(f->waits, &open.wait, sizeof(open.wait));
	assert_non_null(row);
	assert_non_null(row->stack);
	return row->stack;
}

static void expect_none(const struct wait_stack *stack, const char *why)
{
	assert_int_equal(stack->nkernel, 0);
	assert_int_equal(stack->user.len, 0);
	assert_non_null(strstr(stack->user_error, why));
	assert_string_equal(stack->kernel_error_words, stack->user_error);
}

static void test_same_count(void **state)
{
	const struct wait_stack *stack;
	struct fixture f;

	start(&f, (struct task_record){.flags = TASK_HAS_RUNS, .runs = RUNS});
	stack = stack_of(&f, TID, RUNS);
	assert_int_equal(stack->nkernel, 2);
	assert_null(stack->user_error);
	assert_null(stack->kernel_error_words);
	finish(&f);
}

static void test_has_run(void **state)
{
	struct fixture f;

	start(&f, (struct task_record){.flags = TASK_HAS_RUNS, .runs = RUNS});
	expect_none(stack_of(&f, TID, RUNS + 1), "had run before");
	expect_none(stack_of(&f, TID + 1, RUNS), "had run before"); /* it ran when it was looked for */
	finish(&f);
}

/* Equal zeros of a kernel that does not count prove nothing, whether it has the counter or not. */
static void test_kernel_does_not_count(void **state)
{
	struct fixture f;

	start(&f, (struct task_record){0});
	expect_none(stack_of(&f, TID, 0), "does not count");
	finish(&f);
	start(&f, (struct task_record){.flags = TASK_HAS_RUNS});
	expect_none(stack_of(&f, TID, 0), "does not count");
	finish(&f);
}

/* None could be read. */
static void test_reason(void **state)
{
	struct offcpu_wait wait = {.kind = OFFCPU_WAIT, .key.state = OFFCPU_SLEEPING, .duration_ns = 100}, other = wait;
	const struct wait_row *row;
	struct fixture f;

	start(&f, (struct task_record){0});
	unfinished_add_reason("it is refused", true, f.waits, &wait);
	other.key.tid = TID;
	unfinished_add_reason("it is refused", true, f.waits, &other);
	row = waits_add_wait(f.waits, &wait, sizeof(wait));
	expect_none(row->stack, "it is refused");
	assert_ptr_equal(waits_add_wait(f.waits, &other, sizeof(other))->stack, row->stack);
	finish(&f);
	start(&f, (struct task_record){0});
	unfinished_add_reason("it is refused", false, f.waits, &wait);
	row = waits_add_wait(f.waits, &wait, sizeof(wait));
	assert_null(row->stack->user_error);
	assert_string_equal(row->stack->kernel_error_words, "it is refused");
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_count),
		cmocka_unit_test(test_has_run),
		cmocka_unit_test(test_kernel_does_not_count),
		cmocka_unit_test(test_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
