/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "runtime/runtime.h"

static struct stack ends_with(struct frame frames[static 2], const char *symbol, uint32_t flags)
{
	frames[0] = (struct frame){.symbol = "runtime.park_m"};
	frames[1] = (struct frame){.symbol = symbol, .flags = flags};
	return (struct stack){.data = frames, .len = 2};
}

static void expect(const char *symbol, uint32_t flags, bool is_switch, bool whole)
{
	struct frame frames[2];
	struct stack stack = ends_with(frames, symbol, flags);

	const char *why;

	assert_int_equal(go_runtime.is_cut(&stack, &why), is_switch);
	assert_int_equal(why == NULL, whole);
}

static void test_leaves(void **state)
{
	expect("runtime.mcall", FRAME_RETURN_ADDRESS, true, true);
	expect("runtime.mcall.abi0", FRAME_RETURN_ADDRESS, true, true);
	expect("runtime.mcall", 0, false, true); /* it is there itself, and may not have switched yet */
}

static void test_calls(void **state)
{
	expect("runtime.systemstack", FRAME_RETURN_ADDRESS, true, false);
	expect("runtime.systemstack.abi0", FRAME_RETURN_ADDRESS, true, false);
	expect("runtime.morestack.abi0", FRAME_RETURN_ADDRESS, true, false);
	expect("runtime.asmcgocall.abi0", FRAME_RETURN_ADDRESS, true, false);
}

static void test_others(void **state)
{
	struct stack none = {0};
	const char *why;

	expect("runtime.systemstack_switch", FRAME_RETURN_ADDRESS, false, true);
	expect("runtime.mcall.func1", FRAME_RETURN_ADDRESS, false, true);
	expect("main.main", FRAME_RETURN_ADDRESS, false, true);
	expect(NULL, FRAME_RETURN_ADDRESS, false, true);
	assert_false(go_runtime.is_cut(&none, &why));
	assert_null(why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
