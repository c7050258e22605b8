/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "model/stack.h"

static void test_end_names(void **state)
{
	assert_string_equal(stack_end_name(STACK_COMPLETE), "complete");
	assert_string_equal(stack_end_name(STACK_NO_UNWIND_INFO), "no_unwind_info");
	assert_string_equal(stack_end_name(STACK_COPY_LIMIT), "stack_copy_limit");
	assert_string_equal(stack_end_name(STACK_UNREADABLE), "unreadable_memory");
	assert_string_equal(stack_end_name(STACK_NO_PROGRESS), "no_progress");
	assert_string_equal(stack_end_name(STACK_DEPTH_LIMIT), "depth_limit");
	for (int i = 0; i < STACK_END_COUNT; i++)
		assert_non_null(stack_end_name(i));
}

static void test_kind_names(void **state)
{
	assert_string_equal(frame_kind_name(FRAME_KIND_NATIVE), "native");
	assert_string_equal(frame_kind_name(FRAME_KIND_KERNEL), "kernel");
	assert_string_equal(frame_kind_name(FRAME_KIND_SIGNAL), "signal");
}

static void compare(struct frame *a, size_t na, struct frame *b, size_t nb, bool same)
{
	struct stack x = {a, na, na}, y = {b, nb, nb};

	assert_int_equal(stack_same_functions(&x, &y), same);
	assert_int_equal(stack_same_functions(&y, &x), same);
	assert_int_equal(stack_hash_functions(&x) == stack_hash_functions(&y), same);
}

static void test_functions(void **state)
{
	struct module_info module = {.path = "/bin/a"};
	struct frame here[] = {{.symbol = "f", .address = 1}, {.symbol = "main", .address = 9}};
	struct frame there[] = {{.symbol = "f", .address = 2, .line = 5}, {.symbol = "main", .address = 8}};
	struct frame inlined[] = {{.symbol = "i", .address = 2, .inlined = true}, here[0], here[1]};
	struct frame deeper[] = {here[0], here[1], {.symbol = "_start"}};
	struct frame unknown[] = {{.address = 1}, here[1]}, other[] = {{.address = 2}, here[1]};

	compare(here, 2, there, 2, true);
	compare(here, 2, inlined, 3, true);
	compare(inlined, 1, NULL, 0, true);
	compare(here, 2, deeper, 3, false);
	compare(here, 2, unknown, 2, false);
	compare(unknown, 2, unknown, 2, true);
	compare(unknown, 2, other, 2, false);
	there[1].module = &module; /* of the same name, in another file */
	assert_false(stack_same_functions(&(struct stack){here, 2, 2}, &(struct stack){there, 2, 2}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_end_names), cmocka_unit_test(test_kind_names),
					   cmocka_unit_test(test_functions)};

	return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
