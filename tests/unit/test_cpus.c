/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "capture/cpus.h"

/* A machine of 128 CPUs: 100 to 127 are isolated, and 64 to 79 are not for us. */
static struct cpu_rules big_machine(void)
{
	struct cpu_rules rules;

	CPU_ZERO(&rules.allowed);
	CPU_ZERO(&rules.aloof);
	cpus_add_list("0-63,80-127", &rules.allowed);
	cpus_add_list("100-127\n", &rules.aloof);
	return rules;
}

static cpu_set_t listed(const char *text)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	cpus_add_list(text, &cpus);
	return cpus;
}

static void assert_chosen(const char *seen, bool all, const char *expected)
{
	const struct cpu_rules rules = big_machine();
	cpu_set_t chosen, there = listed(seen), wanted = listed(expected);

	assert_true(cpus_choose(&rules, &there, all, &chosen));
	assert_true(CPU_EQUAL(&chosen, &wanted));
}

static void test_only_where_it_runs(void **state)
{
	assert_chosen("3,17,40,63", false, "3,17,40,63");
	assert_chosen("", false, "");
}

static void test_all(void **state)
{
	assert_chosen("3", true, "0-63,80-99");
}

static void test_isolated_ones(void **state)
{
	assert_chosen("3,101", false, "3,101");
	assert_chosen("3,101", true, "0-63,80-99,101");
}

/* Then it is left to others. */
static void test_not_for_us(void **state)
{
	const struct cpu_rules rules = big_machine();
	cpu_set_t chosen, seen = listed("3,70"), wanted = listed("3");

	assert_false(cpus_choose(&rules, &seen, false, &chosen));
	assert_true(CPU_EQUAL(&chosen, &wanted));
}

static void test_lists(void **state)
{
	static const struct {
		const char *text;
		int count;
	} cases[] = {{"", 0}, {"\n", 0}, {"0", 1}, {"0-3,8\n", 5}, {"1,3,5-6", 4}, {"x", 0}, {"2-", 0}, {"5,y", 1}, {"0-5000", CPU_SETSIZE}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cpu_set_t cpus = listed(cases[i].text);

		assert_int_equal(CPU_COUNT(&cpus), cases[i].count);
	}
}

static void test_this_machine(void **state)
{
	struct cpu_rules rules;
	cpu_set_t own;

	assert_true(cpu_rules_read(&rules));
	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	assert_true(CPU_EQUAL(&rules.allowed, &own));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_where_it_runs),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_isolated_ones),
		cmocka_unit_test(test_not_for_us),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
