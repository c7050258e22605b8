/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "report/lacking.h"

static void test_each_once(void **state)
{
	const struct module_info good = {.path = "/good"}, bad = {.path = "/bad", .problem = "no debug info"},
				 worse = {.path = "/worse", .problem = "no symbols"};
	struct frame frames[] = {
		{.module = &good}, {.module = &worse}, {.module = NULL}, {.module = &bad}, {.module = &worse}};
	const struct stack stacks[] = {{.data = frames, .len = 3}, {.data = frames, .len = 5}};
	struct trace trace = {0};
	struct lacking lacking = {0};

	assert_true(lacking_find(&lacking, &trace));
	assert_int_equal(lacking.len, 0);
	assert_true(vec_push(&trace.threads, (struct trace_thread){.user = &stacks[0]}));
	assert_true(vec_push(&trace.threads, (struct trace_thread){.user = NULL}));
	assert_true(vec_push(&trace.threads, (struct trace_thread){.user = &stacks[1]}));
	assert_true(lacking_find(&lacking, &trace));
	assert_int_equal(lacking.len, 2);
	assert_ptr_equal(lacking.data[0], &worse);
	assert_ptr_equal(lacking.data[1], &bad);
	lacking_deinit(&lacking);
	vec_deinit(&trace.threads);
}

static void test_profile(void **state)
{
	static const struct module_info idle = {.path = "/idle", .problem = "no symbols"},
					busy = {.path = "/busy", .problem = "no debug info"},
					waker = {.path = "/waker", .problem = "no debug info"};
	struct frame frames[] = {{.module = &idle}, {.module = &busy}, {.module = &waker}};
	const struct stack stacks[] = {{.data = &frames[0], .len = 1},
				       {.data = &frames[1], .len = 1},
				       {.data = &frames[2], .len = 1}};
	struct offcpu_row rows[] = {
		{.user = &stacks[0], .idle = true},
		{.user = NULL},
		{.user = &stacks[1], .waker = {.user = &stacks[0]}}, /* a waker that is not there */
		{.user = &stacks[1], .has_waker = true, .waker = {.user = &stacks[2]}},
	};
	const struct offcpu_profile profile = {.rows = {rows, 4, 4}};
	struct lacking lacking = {0};

	assert_true(lacking_find_offcpu(&lacking, &profile, true));
	assert_int_equal(lacking.len, 2);
	assert_ptr_equal(lacking.data[0], &busy);
	assert_ptr_equal(lacking.data[1], &waker);
	assert_true(lacking_find_offcpu(&lacking, &profile, false));
	assert_int_equal(lacking.len, 3);
	assert_ptr_equal(lacking.data[2], &idle);
	lacking_deinit(&lacking);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_once),
		cmocka_unit_test(test_profile),
	};

	return cmocka_run_group_tests_name("lacking", tests, NULL, NULL);
}
