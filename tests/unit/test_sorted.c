/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "base/sorted.h"

struct item {
	uint64_t start;
};

static void test_upto(void **state)
{
	const struct item items[] = {{10}, {20}, {20}, {30}};

	assert_int_equal(sorted_upto(items, 0, .start, 10), 0);
	assert_int_equal(sorted_upto(items, 4, .start, 9), 0);
	assert_int_equal(sorted_upto(items, 4, .start, 10), 1);
	assert_int_equal(sorted_upto(items, 4, .start, 19), 1);
	assert_int_equal(sorted_upto(items, 4, .start, 20), 3);
	assert_int_equal(sorted_upto(items, 4, .start, 29), 3);
	assert_int_equal(sorted_upto(items, 4, .start, UINT64_MAX), 4);
}

static void test_pointers(void **state)
{
	const struct item one = {1}, two = {2};
	const struct item *const items[] = {&one, &two};

	assert_int_equal(sorted_upto(items, 2, ->start, 0), 0);
	assert_int_equal(sorted_upto(items, 2, ->start, 1), 1);
	assert_int_equal(sorted_upto(items, 2, ->start, 2), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_upto),
		cmocka_unit_test(test_pointers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
