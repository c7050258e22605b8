/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"
#include "scratch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/lsm.h"

static void expect(const char *text, const char *module, const char *name)
{
	struct lsm_label label;

	lsm_parse(text, &label);
	if (!module) {
		assert_null(label.module);
		return;
	}
	assert_string_equal(label.module, module);
	assert_string_equal(label.name, name);
}

static void test_labels(void **state)
{
	expect("docker-default (enforce)\n", "AppArmor", "docker-default");
	expect("cri-containerd.apparmor.d (enforce)", "AppArmor", "cri-containerd.apparmor.d");
	expect("/usr/sbin/cupsd (enforce)\n", "AppArmor", "/usr/sbin/cupsd");
	expect("/usr/bin/x (complain)\n", NULL, NULL); /* nothing is refused */
	expect("unconfined\n", NULL, NULL);
	expect("system_u:system_r:container_t:s0:c123,c456", "SELinux", "container_t");
	expect("staff_u:staff_r:staff_t:s0\n", "SELinux", "staff_t");
	expect("unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023", NULL, NULL);
	expect("system_u:system_r:spc_t:s0", NULL, NULL);
	expect("kernel", NULL, NULL);
	expect("a:b", NULL, NULL);
	expect("", NULL, NULL);
}

/* Where both are active the older file tells of one of them only. */
static void test_files(void **state)
{
	struct lsm_label label;
	struct scratch scratch;
	int dir;

	scratch_init(&scratch);
	dir = scratch_open(&scratch, ".", O_PATH | O_DIRECTORY);
	lsm_read(dir, &label);
	assert_null(label.module);
	assert_int_equal(mkdirat(dir, "attr", 0700), 0);
	scratch_write(&scratch, "attr/current", "u:r:container_t:s0", 18);
	lsm_read(dir, &label);
	assert_string_equal(label.module, "SELinux");
	assert_int_equal(mkdirat(dir, "attr/apparmor", 0700), 0);
	scratch_write(&scratch, "attr/apparmor/current", "web (enforce)\n", 14);
	lsm_read(dir, &label);
	assert_string_equal(label.module, "AppArmor");
	close(dir);
	scratch_deinit(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
