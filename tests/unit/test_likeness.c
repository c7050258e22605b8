/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "cmd/likeness.h"

/* The best of some names for the word; NULL: none. */
static const char *best(const char *word)
{
	static const char *const names[] = {"offcpu", "snapshot", "replay", "redis-server", "nginx", "sh"};
	struct likeness likeness = {.word = word};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		likeness_try(&likeness, names[i]);
	return likeness.best;
}

static void test_mistakes(void **state)
{
	assert_string_equal(best("ofcpu"), "offcpu");
	assert_string_equal(best("offfcpu"), "offcpu");
	assert_string_equal(best("offcup"), "offcpu");
	assert_string_equal(best("snapshto"), "snapshot");
	assert_string_equal(best("ngnix"), "nginx");
	assert_string_equal(best("redis-srever"), "redis-server");
}

static void test_beginnings(void **state)
{
	assert_string_equal(best("redis"), "redis-server");
	assert_string_equal(best("snap"), "snapshot");
	assert_null(best("re"));
}

static void test_what_is_like_nothing(void **state)
{
	char longest[1000];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_null(best(""));
	assert_null(best("x"));
	assert_null(best("postgres"));
	assert_null(best(longest));
	assert_null(best("nginx")); /* that was not mistyped */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_beginnings),
		cmocka_unit_test(test_what_is_like_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
