/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/user.h"

/* The variant of the program in one static file, beside the usual one. */
bool user_name_in_passwd(uint32_t uid, char *buf, size_t size);
char *user_home_in_passwd(uint32_t uid);
int user_groups_in_file(uint32_t uid, gid_t first, gid_t **out);
bool user_find_group_in_file(const char *name, gid_t *out);
#define STATIC_BUILD
#define user_name user_name_in_passwd
#define user_home user_home_in_passwd
#define user_groups user_groups_in_file
#define user_find_group user_find_group_in_file
#include "base/user.c"
#undef user_name
#undef user_home
#undef user_groups
#undef user_find_group

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

/* The order is a matter of the library's. */
static void assert_same_groups(uint32_t uid, gid_t first)
{
	gid_t *usual, *in_file;
	int n = user_groups(uid, first, &usual), found = 0;

	assert_int_equal(user_groups_in_file(uid, first, &in_file), n);
	assert_int_equal(in_file[0], first);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			found += in_file[i] == usual[k];
	assert_int_equal(found, n);
	free(usual);
	free(in_file);
}

static void test_home_and_groups(void **state)
{
	_cleanup_fclose_ FILE *file = fopen("/etc/passwd", "re");
	struct passwd *user;

	assert_non_null(file);
	while ((user = fgetpwent(file))) {
		uint32_t uid = user->pw_uid;
		gid_t gid = user->pw_gid;
		char *usual = user_home(uid), *in_passwd = user_home_in_passwd(uid);

		assert_string_equal(in_passwd, usual);
		free(usual);
		free(in_passwd);
		assert_same_groups(uid, gid);
	}
	assert_null(user_home(4294967290u));
	assert_null(user_home_in_passwd(4294967290u));
	assert_same_groups(4294967290u, 17);
}

static void test_group(void **state)
{
	_cleanup_fclose_ FILE *file = fopen("/etc/group", "re");
	gid_t usual, in_file, none = 17;
	struct group *group;
	char name[64];

	assert_non_null(file);
	while ((group = fgetgrent(file))) {
		snprintf(name, sizeof(name), "%s", group->gr_name);
		assert_true(user_find_group(name, &usual));
		assert_true(user_find_group_in_file(name, &in_file));
		assert_int_equal(in_file, usual);
	}
	assert_false(user_find_group("no such group", &none));
	assert_false(user_find_group_in_file("no such group", &none));
	assert_int_equal(none, 17);
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
		cmocka_unit_test(test_home_and_groups),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
