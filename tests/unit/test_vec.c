/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "base/vec.h"

static void test_push(void **state)
{
	VEC(int) v = {0};

	for (int i = 0; i < 1000; i++)
		assert_true(vec_push(&v, i));
	assert_int_equal(v.len, 1000);
	assert_true(v.cap >= v.len);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(v.data[i], i);
	vec_deinit(&v);
	assert_null(v.data);
	assert_int_equal(v.len, 0);
	assert_int_equal(v.cap, 0);
	vec_deinit(&v);
}

static void test_push_struct(void **state)
{
	struct pair {
		int a, b;
	};
	VEC(struct pair) v = {0};

	assert_true(vec_push(&v, (struct pair){1, 2}));
	assert_int_equal(v.data[0].b, 2);
	vec_deinit(&v);
}

static void test_reserve(void **state)
{
	VEC(uint64_t) v = {0};

	assert_true(vec_reserve(&v, 100));
	assert_true(v.cap >= 100);
	assert_int_equal(v.len, 0);
	vec_deinit(&v);
}

static void test_too_large(void **state)
{
	VEC(uint64_t) v = {0};

	assert_true(vec_push(&v, 42));
	assert_false(vec_reserve(&v, SIZE_MAX));
	assert_false(vec_reserve(&v, SIZE_MAX / sizeof(uint64_t) + 1));
	assert_int_equal(v.len, 1);
	assert_int_equal(v.data[0], 42);
	vec_deinit(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push),
		cmocka_unit_test(test_push_struct),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_too_large),
	};

	return cmocka_run_group_tests_name("vec", tests, NULL, NULL);
}
