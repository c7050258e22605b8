/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "privilege/capabilities.h"
#include "privilege/file_rights.h"

static bool needs(int last, int capability)
{
	struct needed_right rights[MAX_NEEDED_RIGHTS];
	size_t n = needed_rights(last, rights);

	for (size_t i = 0; i < n; i++) {
		assert_true(strncmp(rights[i].name, "cap_", 4) == 0 && rights[i].without[0]);
		if (rights[i].capability == capability)
			return true;
	}
	return false;
}

/* Which kernel knows what: 37 is the last of 4.x, 39 came with 5.8, 40 with 5.9. */
static void test_kernels(void **state)
{
	assert_true(needs(37, CAP_SYS_ADMIN) && needs(37, CAP_SYS_PTRACE));
	assert_false(needs(37, CAP_BPF) || needs(37, CAP_PERFMON) || needs(37, CAP_CHECKPOINT_RESTORE));
	assert_true(needs(39, CAP_BPF) && needs(39, CAP_SYS_ADMIN));
	assert_true(needs(40, CAP_BPF) && needs(40, CAP_PERFMON) && needs(40, CAP_CHECKPOINT_RESTORE));
	assert_false(needs(40, CAP_SYS_ADMIN));
	assert_false(needs(60, CAP_SYS_ADMIN));
}

static void test_last_capability(void **state)
{
	FILE *f = fopen("/proc/sys/kernel/cap_last_cap", "r");
	int last;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &last), 1);
	fclose(f);
	assert_int_equal(capabilities_last(), last);
}

static char path[] = "/tmp/stakeout-rights-XXXXXX";

static int make_program(void **state)
{
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || fchmod(fd, 0755) < 0 || close(fd) < 0 ? -1 : 0;
}

static int remove_program(void **state)
{
	return unlink(path);
}

static void refused(const char *why)
{
	struct err err = {0};

	assert_true(file_rights_open(path, &err) < 0);
	if (!strstr(err.msg, why))
		fail_msg("%s", err.msg);
}

static void test_unsafe_programs(void **state)
{
	char other[sizeof(path) + 8];

	if (geteuid() != 0)
		skip();
	chmod(path, 0644);
	refused("not a program");
	chmod(path, 0775);
	refused("others than root can change");
	chmod(path, 0755);
	assert_int_equal(chown(path, 12345, 0), 0);
	refused("others than root can change");
	assert_int_equal(chown(path, 0, 0), 0);
	snprintf(other, sizeof(other), "%s.link", path);
	assert_int_equal(link(path, other), 0);
	refused("hard links");
	unlink(other);
	assert_int_equal(symlink(path, other), 0);
	assert_true(file_rights_open(other, NULL) == -ELOOP);
	unlink(other);
}

static void test_give_and_take_back(void **state)
{
	uint64_t rights = RIGHT(CAP_SYS_PTRACE) | RIGHT(CAP_BPF);
	struct err err = {0};
	struct stat st;
	int fd;

	if (geteuid() != 0)
		skip();
	fd = file_rights_open(path, &err);
	assert_true(fd >= 0);
	assert_int_equal(file_rights_read(fd), 0);
	if (file_rights_give(fd, rights, 12345, &err) < 0) {
		print_message("%s\n", err.msg);
		assert_int_equal(err.code, EOPNOTSUPP);
		skip();
	}
	assert_int_equal(file_rights_read(fd), rights);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_true(st.st_uid == 0 && st.st_gid == 12345);
	assert_int_equal(file_rights_take_back(fd, &err), 0);
	assert_int_equal(file_rights_take_back(fd, &err), 0); /* there is nothing any more */
	assert_int_equal(file_rights_read(fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(st.st_gid, 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_last_capability),
		cmocka_unit_test_setup_teardown(test_unsafe_programs, make_program, remove_program),
		cmocka_unit_test_setup_teardown(test_give_and_take_back, make_program, remove_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
