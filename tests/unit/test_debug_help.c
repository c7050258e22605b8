/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include "symbol/debug_help.h"

static const char *help_for(const char *file, const char *text)
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
	help = debug_help(fd);
	close(fd);
	scratch_deinit(&s);
	return help;
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
	};

	return cmocka_run_group_tests_name("debug_help", tests, NULL, NULL);
}
