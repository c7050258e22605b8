/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"
#include "scratch.h"

#include <fcntl.h>
#include <string.h>

#include "proc/mounts.h"

struct seen {
	unsigned n;
	struct mount_entry last;
	char where[64];
	char type[64];
	char source[64];
};

static void visit(void *arg, const struct mount_entry *mount)
{
	struct seen *seen = arg;

	seen->n++;
	seen->last = *mount;
	snprintf(seen->where, sizeof(seen->where), "%s", mount->where);
	snprintf(seen->type, sizeof(seen->type), "%s", mount->type);
	snprintf(seen->source, sizeof(seen->source), "%s", mount->source);
}

static struct seen read_text(const char *text)
{
	struct seen seen = {0};
	struct scratch scratch;
	int dir;

	scratch_init(&scratch);
	scratch_write(&scratch, "mountinfo", text, strlen(text));
	dir = scratch_open(&scratch, ".", O_PATH | O_DIRECTORY);
	assert_int_equal(mounts_visit(dir, visit, &seen), 0);
	close(dir);
	scratch_deinit(&scratch);
	return seen;
}

static void test_lines(void **state)
{
	struct seen seen = read_text("22 27 0:21 / /proc rw,relatime - proc proc rw\n"
				     "36 35 98:12 /root /a\\040b\\134c rw,noatime master:1 shared:2 - fuse.sshfs me@host:/ rw\n");

	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.last.id, 36);
	assert_int_equal(seen.last.dev_major, 98);
	assert_int_equal(seen.last.dev_minor, 12);
	assert_string_equal(seen.where, "/a b\\c");
	assert_string_equal(seen.type, "fuse.sshfs");
	assert_string_equal(seen.source, "me@host:/");
}

/* A bad line costs that line. */
static void test_damaged_lines(void **state)
{
	struct seen seen = read_text("\n36 35\n36 35 x:y / /a rw - ext4 d rw\n36 35 1:2 / /a rw -\n- - - -\n"
				     "7 1 8:1 / /last rw - ext4 /dev/sda1 rw");

	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.where, "/last");
}

static void test_own(void **state)
{
	struct seen seen = {0};
	int dir = open("/proc/self", O_PATH | O_DIRECTORY);

	assert_int_equal(mounts_visit(dir, visit, &seen), 0);
	assert_true(seen.n > 0);
	close(dir);
	assert_true(mounts_visit(-1, visit, &seen) < 0);
}

static void test_types(void **state)
{
	assert_true(mount_type_is_local("ext4"));
	assert_true(mount_type_is_local("tmpfs"));
	assert_false(mount_type_is_local("fuse"));
	assert_false(mount_type_is_local("fuse.sshfs"));
	assert_false(mount_type_is_local("nfs4"));
	assert_false(mount_type_is_local("autofs"));
	assert_false(mount_type_is_local("whatever comes next"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_damaged_lines),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
