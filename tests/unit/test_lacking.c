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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_once),
	};

	return cmocka_run_group_tests_name("lacking", tests, NULL, NULL);
}
