/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "base/hash.h"
#include "report/offcpu_reasons.h"

static void test_same(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{NULL, NULL, true},
		{NULL, "", false},
		{"", NULL, false},
		{"", "", true},
		{"no maps", "no maps", true},
		{"no maps", "no map", false},
		{"the word at 0x10", "the word at 0x7fffab", true},
		{"at 0x10, then", "at 0x20, then", true},
		{"at 0x10, then", "at 0x20, else", false},
		{"at 0x10 and 0x20", "at 0x30 and 0x4", true},
		{"at 0x10 and 0x20", "at 0x30 and", false},
		{"at 0x", "at 0x1", true},
		{"at 0x1", "at 1", false},
		{"3 of 0x1", "4 of 0x1", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(offcpu_same_reason(cases[i].a, cases[i].b), cases[i].same);
		assert_int_equal(offcpu_same_reason(cases[i].b, cases[i].a), cases[i].same);
		if (cases[i].same)
			assert_int_equal(offcpu_hash_reason(HASH_SEED, cases[i].a),
					 offcpu_hash_reason(HASH_SEED, cases[i].b));
	}
}

static struct offcpu_row row(uint64_t waits, const char *user, const char *kernel)
{
	return (struct offcpu_row){
		.sum = {.count = waits, .total_ns = 10 * waits}, .user_error = user, .kernel_error = kernel};
}

static void expect(const struct offcpu_reason *reason, enum offcpu_stack_kind kind, const char *words, uint64_t waits)
{
	assert_int_equal(reason->kind, kind);
	assert_string_equal(reason->words, words);
	assert_int_equal(reason->waits, waits);
	assert_int_equal(reason->total_ns, 10 * waits);
}

static void test_reasons(void **state)
{
	struct offcpu_row rows[] = {
		row(9, NULL, "denied"),  row(3, "no maps", "no maps"), row(2, "at 0x10", NULL),
		row(2, "at 0x20", NULL), row(90, NULL, NULL),
	};
	struct offcpu_profile profile = {.rows = {rows, 5, 5}};
	struct offcpu_reasons reasons = {0};

	rows[4].has_waker = true;
	rows[4].waker = (struct offcpu_waker){.user_error = "no maps", .kernel_error = "lost"};
	rows[3].waker = rows[4].waker; /* it has none */
	assert_true(offcpu_reasons_find(&reasons, &profile));
	assert_int_equal(reasons.len, 6);
	expect(&reasons.data[4], OFFCPU_WAKER_USER_STACK, "no maps", 90);
	expect(&reasons.data[5], OFFCPU_WAKER_KERNEL_STACK, "lost", 90);
	expect(&reasons.data[0], OFFCPU_USER_STACK, "at 0x10", 4);
	expect(&reasons.data[1], OFFCPU_USER_STACK, "no maps", 3);
	expect(&reasons.data[2], OFFCPU_KERNEL_STACK, "denied", 9);
	expect(&reasons.data[3], OFFCPU_KERNEL_STACK, "no maps", 3);
	offcpu_reasons_deinit(&reasons);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests_name("offcpu_reasons", tests, NULL, NULL);
}
