/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "runtime/made_code.h"

static const struct module_info node = {.path = "/usr/bin/node"}, libnode = {.path = "/usr/lib/libnode.so.108"},
				jvm = {.path = "/opt/jdk/lib/server/libjvm.so"}, noded = {.path = "/usr/bin/noded"};

/* Native code, which two functions made at run time call; they were called by code of `maker`. */
static bool is_doubtful(const struct module_info *maker, uint32_t outer_flags, uint32_t maker_flags)
{
	struct frame frames[] = {
		{.raw = 0, .symbol = "pause", .module = &jvm},
		{.raw = 1},
		{.raw = 2, .symbol = "LFoo;::bar", .symbol_source = SYMBOL_PERF_MAP, .flags = outer_flags},
		{.raw = 3, .symbol = "inlined", .module = maker, .flags = maker_flags, .inlined = true},
		{.raw = 3, .symbol = "call", .module = maker, .flags = maker_flags},
	};

	return made_code_doubt(&(struct stack){.data = frames, .len = sizeof(frames) / sizeof(frames[0])});
}

static void test_frame_pointer(void **state)
{
	assert_true(is_doubtful(&jvm, FRAME_BY_FRAME_POINTER, FRAME_BY_FRAME_POINTER));
	assert_true(is_doubtful(&jvm, FRAME_BY_CODE, FRAME_BY_FRAME_POINTER));
	assert_true(is_doubtful(&jvm, FRAME_BY_FRAME_POINTER, 0));
	assert_true(is_doubtful(&noded, FRAME_BY_FRAME_POINTER, FRAME_BY_FRAME_POINTER));
}

static void test_certain(void **state)
{
	assert_false(is_doubtful(&jvm, FRAME_BY_CODE, FRAME_BY_CODE));
	assert_false(is_doubtful(&jvm, 0, 0));
	assert_false(is_doubtful(&node, FRAME_BY_FRAME_POINTER, FRAME_BY_FRAME_POINTER));
	assert_false(is_doubtful(&libnode, FRAME_BY_FRAME_POINTER, FRAME_BY_FRAME_POINTER));
}

/* Files without CFI have frame pointers more often than not, and were looked at. */
static void test_file(void **state)
{
	struct frame frames[] = {
		{.raw = 0, .symbol = "inner", .module = &jvm},
		{.raw = 1, .symbol = "outer", .module = &jvm, .flags = FRAME_BY_FRAME_POINTER},
	};

	assert_null(made_code_doubt(&(struct stack){.data = frames, .len = 2}));
	assert_null(made_code_doubt(&(struct stack){0}));
}

/* Nothing tells who made it. */
static void test_no_maker(void **state)
{
	struct frame frames[] = {{.raw = 0}, {.raw = 1, .flags = FRAME_BY_FRAME_POINTER}};

	assert_non_null(made_code_doubt(&(struct stack){.data = frames, .len = 2}));
}

/* A runtime's own code is such, too, where it did not lead through it itself; V8's always keeps frame pointers. */
static void test_runtimes(void **state)
{
	struct frame frames[] = {
		{.raw = 0, .symbol = "stub", .kind = FRAME_KIND_STUB},
		{.raw = 1, .symbol = "caller", .kind = FRAME_KIND_JS, .flags = FRAME_BY_FRAME_POINTER},
	};
	struct stack stack = {.data = frames, .len = 2};

	assert_null(made_code_doubt(&stack));
	frames[1].kind = FRAME_KIND_JAVA;
	assert_non_null(made_code_doubt(&stack));
	frames[1].flags = FRAME_BY_SCAN;
	assert_non_null(made_code_doubt(&stack));
	frames[1].flags = 0;
	assert_null(made_code_doubt(&stack));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame_pointer),
		cmocka_unit_test(test_certain),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_no_maker),
		cmocka_unit_test(test_runtimes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
