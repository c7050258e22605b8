/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "cmd/parse.h"

static void expect_size(const char *text, uint64_t want)
{
	uint64_t value = 0;

	assert_true(parse_size(text, 0, UINT64_MAX, &value));
	assert_int_equal(value, want);
}

static void expect_no_size(const char *text)
{
	uint64_t value;

	if (parse_size(text, 0, UINT64_MAX, &value))
		fail_msg("'%s' was taken for %llu", text, (unsigned long long)value);
}

static void test_sizes(void **state)
{
	expect_size("0", 0);
	expect_size("1", 1);
	expect_size("010", 10); /* no octal */
	expect_size("64k", 65536);
	expect_size("64K", 65536);
	expect_size("8m", 8 << 20);
	expect_size("8M", 8 << 20);
	expect_size("2g", UINT64_C(2) << 30);
	expect_size("2G", UINT64_C(2) << 30);
	expect_size("18446744073709551615", UINT64_MAX);
	expect_size("18014398509481983k", UINT64_MAX & ~UINT64_C(1023));
	expect_size("17179869183g", UINT64_MAX & ~UINT64_C(0x3fffffff));
}

static void test_what_is_no_size(void **state)
{
	expect_no_size("");
	expect_no_size("k");
	expect_no_size("-1");
	expect_no_size("-0");
	expect_no_size("x");
	expect_no_size("1x");
	expect_no_size("1kk");
	expect_no_size("1kB");
	expect_no_size("1 ");
	expect_no_size("1.5");
	expect_no_size("0x10");
	expect_no_size("1t");
	/* more than 64 bits, at once and by the suffix */
	expect_no_size("18446744073709551616");
	expect_no_size("99999999999999999999999999999999");
	expect_no_size("18014398509481984k");
	expect_no_size("17592186044416m");
	expect_no_size("17179869184g");
	expect_no_size("18446744073709551615g");
}

static void test_bounds_of_sizes(void **state)
{
	uint64_t value;

	assert_true(parse_size("1k", 1024, 4096, &value));
	assert_true(parse_size("4k", 1024, 4096, &value));
	assert_false(parse_size("1023", 1024, 4096, &value));
	assert_false(parse_size("4097", 1024, 4096, &value));
	assert_false(parse_size("4g", 1024, 4096, &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_what_is_no_size),
		cmocka_unit_test(test_bounds_of_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
