/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "privilege/caller.h"

enum { OTHER = 12345 };

static void set_sudo(const char *uid, const char *gid)
{
	uid ? setenv("SUDO_UID", uid, 1) : unsetenv("SUDO_UID");
	gid ? setenv("SUDO_GID", gid, 1) : unsetenv("SUDO_GID");
}

static int forget_sudo(void **state)
{
	set_sudo(NULL, NULL);
	return 0;
}

/* Whoever is not root is nobody else for what the environment says, and neither is root for what makes no sense. */
static void test_who_it_is(void **state)
{
	static const char *const senseless[] = {"", "0", "-1", "12x", "99999999999999999999", "4294967295"};

	for (size_t i = 0; i < sizeof(senseless) / sizeof(senseless[0]); i++) {
		set_sudo(senseless[i], "1");
		assert_false(caller_find().by_sudo);
		assert_int_equal(caller_find().uid, getuid());
	}
	set_sudo("12345", NULL);
	assert_false(caller_find().by_sudo);
	set_sudo("12345", "12346");
	assert_int_equal(caller_find().by_sudo, getuid() == 0);
	assert_int_equal(caller_find().uid, getuid() == 0 ? OTHER : getuid());
}

/* A program that uses the library says nothing of the kind, and stays itself. Runs first: it cannot be taken back. */
static void test_acts_for_nobody(void **state)
{
	set_sudo("12345", "12345");
	assert_false(caller_find().by_sudo);
	assert_int_equal(caller_find().uid, getuid());
	caller_act();
}

static void test_for_a_while(void **state)
{
	gid_t before[64], after[64];
	int n = getgroups(64, before);

	if (geteuid() != 0)
		skip();
	set_sudo("12345", "12345");
	{
		_cleanup_(caller_end) struct caller_scope scope = caller_begin_identity();
		_cleanup_(caller_end) struct caller_scope within = caller_begin_identity();

		assert_int_equal(geteuid(), OTHER);
		assert_int_equal(getegid(), OTHER);
		assert_true(caller_find().by_sudo);
		assert_true(open("/etc/shadow", O_RDONLY) < 0);
	}
	assert_int_equal(geteuid(), 0);
	assert_int_equal(getegid(), 0);
	assert_int_equal(getgroups(64, after), n);
	{
		_cleanup_(caller_end) struct caller_scope scope = caller_begin_rights(); /* sudo gives root's */

		assert_int_equal(geteuid(), 0);
	}
}

static void test_for_good(void **state)
{
	pid_t child;
	int status;

	if (geteuid() != 0)
		skip();
	set_sudo("12345", "12345");
	child = fork();
	if (child == 0)
		_exit(caller_become() == 0 && getuid() == OTHER && geteuid() == OTHER && seteuid(0) < 0 ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_give(void **state)
{
	char path[] = "/tmp/stakeout-caller-XXXXXX";
	int fd = mkstemp(path);
	struct stat st;

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(caller_give(fd), 0); /* nobody to give it to */
	assert_true(fstat(fd, &st) == 0 && st.st_uid == geteuid());
	set_sudo("12345", "12345");
	if (geteuid() == 0) {
		assert_int_equal(caller_give(fd), 0);
		assert_true(fstat(fd, &st) == 0 && st.st_uid == OTHER && st.st_gid == OTHER);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_acts_for_nobody, forget_sudo, forget_sudo),
		cmocka_unit_test_setup_teardown(test_who_it_is, forget_sudo, forget_sudo),
		cmocka_unit_test_setup_teardown(test_for_a_while, forget_sudo, forget_sudo),
		cmocka_unit_test_setup_teardown(test_for_good, forget_sudo, forget_sudo),
		cmocka_unit_test_setup_teardown(test_give, forget_sudo, forget_sudo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
