/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <pwd.h>
#include <string.h>

#include "proc/user.h"

/* The variant of the program in one static file, beside the usual one. */
bool user_name_in_passwd(uint32_t uid, char *buf, size_t size);
#define STATIC_BUILD
#define user_name user_name_in_passwd
#include "proc/user.c"
#undef user_name

typedef bool (*name_fn)(uint32_t uid, char *buf, size_t size);
static const name_fn variants[] = {user_name, user_name_in_passwd};

static void test_known(void **state)
{
	char buf[64];

	for (size_t i = 0; i < 2; i++) {
		assert_true(variants[i](0, buf, sizeof(buf)));
		assert_string_equal(buf, "root");
	}
}

static void test_all_of_the_file(void **state)
{
	_cleanup_fclose_ FILE *file = fopen("/etc/passwd", "re");
	char usual[64], in_passwd[64];
	struct passwd *user;

	assert_non_null(file);
	while ((user = fgetpwent(file))) {
		uint32_t uid = user->pw_uid;

		assert_true(user_name(uid, usual, sizeof(usual)));
		assert_true(user_name_in_passwd(uid, in_passwd, sizeof(in_passwd)));
		assert_string_equal(in_passwd, usual);
	}
}

static void test_unknown(void **state)
{
	char buf[64] = "as it was";

	for (size_t i = 0; i < 2; i++) {
		assert_false(variants[i](4294967290u, buf, sizeof(buf)));
		assert_string_equal(buf, "as it was");
	}
}

static void test_cut(void **state)
{
	char buf[3];

	for (size_t i = 0; i < 2; i++) {
		assert_true(variants[i](0, buf, sizeof(buf)));
		assert_string_equal(buf, "ro");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_all_of_the_file),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
