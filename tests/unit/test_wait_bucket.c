/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "bpf/wait_bucket.h"

static void test_log2(void **state)
{
	for (uint32_t bit = 0; bit < 64; bit++) {
		const uint64_t value = UINT64_C(1) << bit;

		assert_int_equal(offcpu_log2(value), bit);
		assert_int_equal(offcpu_log2(value | (value - 1)), bit);
	}
}

static void check(uint64_t ns)
{
	uint64_t middle = offcpu_bucket_middle(offcpu_bucket_of(ns));
	uint64_t away = middle > ns ? middle - ns : ns - middle;

	if (away > ns / 16 + 1)
		fail_msg("%llu ns are in a bucket around %llu", (unsigned long long)ns, (unsigned long long)middle);
}

/* None is more than 6.25 % away from the middle of its bucket. */
static void test_error(void **state)
{
	for (uint64_t ns = 256; ns < 100000; ns++)
		check(ns);
	for (uint64_t ns = 100000; ns < UINT64_C(1) << 60; ns += ns / 1000)
		check(ns);
}

static void test_order(void **state)
{
	uint32_t last = 0;

	for (uint64_t ns = 0; ns < UINT64_C(1) << 40; ns += 1 + ns / 100) {
		uint32_t bucket = offcpu_bucket_of(ns);

		assert_in_range(bucket, last, last + 1);
		last = bucket;
	}
}

static void test_limits(void **state)
{
	assert_int_equal(offcpu_bucket_of(0), 0);
	assert_int_equal(offcpu_bucket_of(256), 0);
	assert_int_equal(offcpu_bucket_of((UINT64_C(1) << 38) - 1), OFFCPU_BUCKETS - 1);
	assert_int_equal(offcpu_bucket_of(UINT64_C(1) << 38), OFFCPU_BUCKETS);
	check(UINT64_MAX / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log2),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
