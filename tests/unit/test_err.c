/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

static void test_set(void **state)
{
	struct err err = {0};

	assert_int_equal(err_set(&err, ENOENT, "no %s", "file"), -ENOENT);
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.msg, "no file");
	assert_int_equal(err_set(NULL, EPERM, "nobody listens"), -EPERM);
}

static void test_prefix(void **state)
{
	struct err err = {0};

	err_set(&err, ENOENT, "no file");
	assert_int_equal(err_prefix(&err, "pid %d", 7), -ENOENT);
	assert_string_equal(err.msg, "pid 7: no file");
	assert_int_equal(err_prefix(&err, "stakeout"), -ENOENT);
	assert_string_equal(err.msg, "stakeout: pid 7: no file");
	assert_int_equal(err_prefix(NULL, "nobody listens"), -EIO);
}

static void test_long_messages_are_cut(void **state)
{
	char text[2 * sizeof(((struct err *)0)->msg)];
	struct err err = {0};

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set(&err, EINVAL, "%s", text);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	err_prefix(&err, "here");
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	assert_memory_equal(err.msg, "here: xxx", 9);
	err_prefix(&err, "%s", text);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_prefix),
		cmocka_unit_test(test_long_messages_are_cut),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
