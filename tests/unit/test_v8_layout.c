/* SPDX-License-Identifier: MIT */
#include "v8make.h"

static void expect_refused(const struct v8_layout *layout, const char *why)
{
	struct err err = {0};

	assert_true(v8_layout_check(layout, &err) < 0);
	assert_non_null(strstr(err.msg, why));
}

static void test_check(void **state)
{
	struct v8_layout good, bad;

	v8make_layout(&good);
	assert_int_equal(v8_layout_check(&good, NULL), 0);

	bad = good;
	bad.facts[V8_MAJOR] = 9;
	expect_refused(&bad, "older than version 10");
	bad = good;
	bad.facts[V8_SMI_SHIFT] = 0;
	expect_refused(&bad, "compresses");
	bad = good;
	bad.facts[V8_FUNCTION_SHARED] = 1 << 20;
	expect_refused(&bad, "v8dbg_class_JSFunction__shared__SharedFunctionInfo is 1048576");
	bad = good;
	bad.facts[V8_FP_FUNCTION] = (uint64_t)-17;
	expect_refused(&bad, "v8dbg_off_fp_function is -17");
	bad = good;
	bad.facts[V8_TYPE_FUNCTION_LAST] = 3;
	expect_refused(&bad, "types");
}

/* What is needed has to be there; the rest may be missing. */
static void test_missing(void **state)
{
	static const enum v8_fact optional[] = {V8_SHARED_DATA, V8_FRAME_ENTRY, V8_FRAME_STUB, V8_FRAME_BUILTIN_EXIT};
	struct v8_layout layout, bad;

	v8make_layout(&layout);
	for (size_t i = V8_MAJOR; i < V8_FACT_COUNT; i++) {
		bool needed = v8_has(&layout, i) && i != V8_TYPE_FUNCTION_LAST && i < V8_STREAM_START;

		for (size_t k = 0; k < sizeof(optional) / sizeof(optional[0]); k++)
			needed = needed && optional[k] != i;
		bad = layout;
		bad.facts[i] = V8_ABSENT;
		if (needed)
			expect_refused(&bad, "does not export");
		else
			assert_int_equal(v8_layout_check(&bad, NULL), 0);
	}
}

static void test_load(void **state)
{
	struct v8_layout layout, loaded;

	v8make_layout(&layout);
	v8_layout_load(layout.facts, V8_FACT_COUNT, &loaded);
	assert_memory_equal(&layout, &loaded, sizeof(layout));
	v8_layout_load(layout.facts, V8_MAP_TYPE, &loaded); /* of an earlier version of the program */
	assert_false(v8_has(&loaded, V8_MAP_TYPE));
	expect_refused(&loaded, "does not export");
}

static void test_frame_kinds(void **state)
{
	struct v8_layout layout;

	v8make_layout(&layout);
	assert_string_equal(v8_frame_kind(&layout, 1), "EntryFrame");
	assert_string_equal(v8_frame_kind(&layout, 25), "BuiltinExitFrame");
	assert_null(v8_frame_kind(&layout, 999));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_frame_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
