/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "runtime/replace.h"

/* Raw frames 0 to 3, the second with a call that was inlined. */
static const struct frame native[] = {
	{.symbol = "read", .raw = 0},
	{.symbol = "eval_inlined", .raw = 1, .inlined = true},
	{.symbol = "eval", .raw = 1},
	{.symbol = "call", .raw = 2},
	{.symbol = "main", .raw = 3},
};

static const struct frame program[] = {
	{.symbol = "inner", .kind = FRAME_KIND_PYTHON},
	{.symbol = "outer", .kind = FRAME_KIND_PYTHON},
};

static struct stack make(void)
{
	struct stack stack = {0};

	for (size_t i = 0; i < sizeof(native) / sizeof(native[0]); i++)
		assert_true(vec_push(&stack, native[i]));
	return stack;
}

static void expect(struct stack *stack, const char *want)
{
	char names[256] = "";

	for (size_t i = 0; i < stack->len; i++) {
		strcat(names, i ? " " : "");
		strcat(names, stack->data[i].symbol);
	}
	assert_string_equal(names, want);
	vec_deinit(stack);
}

static bool stack_replace(struct stack *stack, uint32_t first, uint32_t last, const struct frame *frames, size_t n, bool keep)
{
	struct stack_merge merge = stack_merge_begin(stack, keep);

	stack_merge_replace(&merge, first, last, frames, n);
	return stack_merge_end(&merge);
}

static void test_one(void **state)
{
	struct stack stack = make();

	assert_true(stack_replace(&stack, 1, 1, program, 2, false));
	assert_int_equal(stack.data[1].replaces, 2);
	assert_int_equal(stack.data[2].replaces, 0);
	assert_int_equal(stack.data[2].raw, 1);
	expect(&stack, "read inner outer call main");
}

static void test_several(void **state)
{
	struct stack stack = make();

	assert_true(stack_replace(&stack, 1, 3, program, 1, false));
	assert_int_equal(stack.data[1].replaces, 4);
	expect(&stack, "read inner");
}

static void test_keep(void **state)
{
	struct stack stack = make();

	assert_true(stack_replace(&stack, 2, 2, program, 2, true));
	assert_true(stack_replace(&stack, 3, UINT32_MAX, program, 1, true));
	expect(&stack, "read eval_inlined eval inner outer call inner main");
}

static void test_twice(void **state)
{
	struct stack stack = make();
	struct stack_merge merge = stack_merge_begin(&stack, false);

	stack_merge_replace(&merge, 0, 0, program, 1);
	stack_merge_replace(&merge, 1, 2, program, 2);
	assert_true(stack_merge_end(&merge));
	expect(&stack, "inner inner outer main");
}

static void test_nothing(void **state)
{
	struct stack stack = make();

	assert_true(stack_replace(&stack, 1, 1, program, 0, false));
	expect(&stack, "read eval_inlined eval call main");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),   cmocka_unit_test(test_several), cmocka_unit_test(test_keep),
		cmocka_unit_test(test_twice), cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
