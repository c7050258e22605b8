/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include "symbol/debug_help.h"

static const char *help_of(const char *path, const char *file, const char *text)
{
	struct scratch s;
	const char *help;
	int fd;

	scratch_init(&s);
	scratch_run(&s, "mkdir -p etc usr/lib");
	if (file)
		scratch_text(&s, file, text);
	fd = open(s.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	help = debug_help(fd, path);
	close(fd);
	scratch_deinit(&s);
	return help;
}

static const char *help_for(const char *file, const char *text)
{
	return help_of("/usr/bin/server", file, text);
}

/* There is no package for what somebody has built. */
static void test_own_programs(void **state)
{
	static const char *const own[] = {"/home/me/server", "/usr/local/bin/server", "/opt/server", "/tmp/a.out",
					  "server"};
	static const char *const packaged[] = {"/usr/lib/libz.so.1", "/lib64/libz.so.1", "/bin/sh"};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_non_null(strstr(help_of(own[i], "etc/os-release", "ID=debian\n"), "with -g"));
	for (size_t i = 0; i < sizeof(packaged) / sizeof(packaged[0]); i++)
		assert_non_null(strstr(help_of(packaged[i], "etc/os-release", "ID=debian\n"), "-dbgsym"));
}

static void test_distributions(void **state)
{
	assert_non_null(strstr(help_for("etc/os-release", "NAME=x\nID=debian\n"), "debuginfod.debian.net"));
	assert_non_null(strstr(help_for("etc/os-release", "ID=ubuntu\nID_LIKE=debian\n"), "debuginfod.ubuntu.com"));
	assert_non_null(strstr(help_for("usr/lib/os-release", "ID=fedora\n"), "dnf debuginfo-install"));
	assert_non_null(strstr(help_for("etc/os-release", "ID=\"opensuse-leap\"\n"), "opensuse"));
	assert_non_null(strstr(help_for("etc/os-release", "ID=rocky\nID_LIKE=\"rhel centos fedora\"\n"), "dnf"));
}

/* Other lines of the file may name any distribution. */
static void test_others(void **state)
{
	assert_non_null(strstr(help_for("etc/os-release", "PRETTY_NAME=\"not debian\"\nID=void\n"), "elfutils.org"));
	assert_non_null(strstr(help_for(NULL, NULL), "elfutils.org"));
	assert_non_null(strstr(help_for("etc/os-release", ""), "elfutils.org"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distributions),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_own_programs),
	};

	return cmocka_run_group_tests_name("debug_help", tests, NULL, NULL);
}
