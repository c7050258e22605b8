/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"
#include "scratch.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/filesystems.h"
#include "target/patience.h"

/* A process of another mount namespace, as its directory in /proc shows it. */
static int fake_process(struct scratch *scratch, const char *mounts)
{
	scratch_init(scratch);
	scratch_write(scratch, "mountinfo", mounts, strlen(mounts));
	scratch_run(scratch, "mkdir ns");
	scratch_write(scratch, "ns/mnt", "", 0);
	scratch_open(scratch, "ns/mnt", O_PATH); /* stays open: its inode number, by which it is known, is given to no other */
	return scratch_open(scratch, ".", O_PATH | O_DIRECTORY);
}

static void test_own(void **state)
{
	int self = open("/proc/self", O_PATH | O_DIRECTORY), memory = memfd_create("test", 0);
	struct stat st;

	filesystems_learn(self);
	assert_int_equal(fstat(memory, &st), 0);
	assert_true(filesystems_is_local(major(st.st_dev), minor(st.st_dev)));
	assert_int_equal(stat("/proc", &st), 0);
	assert_true(filesystems_is_local(major(st.st_dev), minor(st.st_dev)));
	assert_false(filesystems_is_local(4000, 1)); /* nobody knows */
	close(self);
	close(memory);
}

static void test_of_another_namespace(void **state)
{
	struct scratch scratch;
	struct notes notes = {0};
	int dir = fake_process(&scratch, "900001 1 4001:1 / /srv rw - ext4 d rw\n"
					 "900002 1 4001:2 / /srv/far rw - nfs4 host:/x rw\n"
					 "900003 1 4001:3 / /mnt rw - fuse.sshfs host rw\n");

	assert_false(filesystems_is_local(4001, 1));
	filesystems_learn(dir);
	assert_true(filesystems_is_local(4001, 1));
	assert_true(filesystems_is_local_mount(900001));
	assert_false(filesystems_is_local(4001, 2));
	assert_false(filesystems_is_local_mount(900002));
	assert_true(filesystems_any_remote());

	assert_false(filesystems_is_dead(4001, 3));
	filesystems_give_up(4001, 3, "a file");
	assert_true(filesystems_is_dead(4001, 3));
	assert_true(filesystems_is_dead_path("/mnt/x"));
	assert_false(filesystems_is_dead_path("/mntx"));
	assert_false(filesystems_is_dead_path("/srv/far/x"));
	filesystems_give_up_path("/srv/far/x");
	assert_true(filesystems_is_dead(4001, 2));
	assert_false(filesystems_is_dead(4001, 1));

	assert_true(patience_tell(&notes));
	assert_int_equal(notes.len, 2);
	assert_non_null(strstr(notes.data[0], "a file: the file system at /mnt (fuse.sshfs) did not answer"));
	assert_non_null(strstr(notes.data[1], "/srv/far/x: the file system at /srv/far (nfs4)"));
	notes_deinit(&notes);
	close(dir);
	scratch_deinit(&scratch);
}

/* An overlay is as far away as what is below it; where that cannot be told it counts as far. */
static void test_overlays(void **state)
{
	struct scratch scratch;
	int dir = fake_process(&scratch, "910001 1 4002:1 / /disk rw - ext4 d rw\n"
					 "910002 1 4002:2 / /disk/net rw - nfs4 host:/x rw\n"
					 "910003 1 4002:3 / /a rw - overlay o rw,lowerdir=/disk/l1:/disk/l2,upperdir=/disk/u,workdir=/disk/w\n"
					 "910004 1 4002:4 / /b rw - overlay o rw,lowerdir=/disk/l1:/disk/net/l2,upperdir=/disk/u\n"
					 "910005 1 4002:5 / /c rw - overlay o ro,lowerdir=/disk/net/l1:/disk/l2\n"
					 "910006 1 4002:6 / /d rw - overlay o ro,lowerdir=l1:/disk/l2\n");

	filesystems_learn(dir);
	assert_true(filesystems_is_local(4002, 3));
	assert_false(filesystems_is_local(4002, 4));
	assert_false(filesystems_is_local(4002, 5));
	assert_false(filesystems_is_local(4002, 6));
	close(dir);
	scratch_deinit(&scratch);
}

static void test_forgotten(void **state)
{
	int self = open("/proc/self", O_PATH | O_DIRECTORY), before, after;
	struct stat st;

	assert_int_equal(stat("/proc", &st), 0);
	filesystems_forget();
	before = dup(self);
	close(before);
	assert_false(filesystems_is_local(major(st.st_dev), minor(st.st_dev)));
	filesystems_learn(self);
	assert_true(filesystems_is_local(major(st.st_dev), minor(st.st_dev)));
	filesystems_give_up(major(st.st_dev), minor(st.st_dev), "/proc");
	assert_true(filesystems_is_dead(major(st.st_dev), minor(st.st_dev)));
	filesystems_forget();
	after = dup(self);
	close(after);
	assert_int_equal(after, before);
	filesystems_learn(self);
	assert_false(filesystems_is_dead(major(st.st_dev), minor(st.st_dev)));
	close(self);
}

enum { KNOWN, NOT_KNOWN, NO_CHROOT };

static bool is_local(const struct stat *st)
{
	return filesystems_is_local(major(st->st_dev), minor(st->st_dev));
}

/* In a root that is no mount point, with nothing but a /proc: nobody lists the mount that its files are on. */
static int look_in_chroot(const char *root, bool knows_outside)
{
	struct stat inside, outside;
	int self;

	if (chdir(root) < 0 || mkdir("proc", 0755) < 0 || mount("proc", "proc", "proc", 0, NULL) < 0 || stat("/", &outside) < 0 ||
	    chroot(".") < 0)
		return NO_CHROOT;
	self = open("/proc/self", O_PATH | O_DIRECTORY);
	if (self < 0 || stat("/", &inside) < 0)
		return NO_CHROOT;
	filesystems_forget();
	filesystems_learn(self);
	return is_local(&inside) && (!knows_outside || is_local(&outside)) ? KNOWN : NOT_KNOWN;
}

static int exit_code_of(pid_t child)
{
	int status;

	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : NO_CHROOT;
}

/* With a pid namespace whoever is first in /proc is in the same chroot, and sees no more. */
static void check_chroot(int namespaces)
{
	struct scratch scratch;
	char root[128];
	pid_t child;
	int result;

	scratch_init(&scratch);
	snprintf(root, sizeof(root), "%s/root", scratch.dir);
	child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWNS | namespaces) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("none", scratch.dir, "tmpfs", 0, NULL) < 0 || mkdir(root, 0755) < 0)
			_exit(NO_CHROOT);
		child = fork();
		if (child == 0)
			_exit(look_in_chroot(root, !namespaces));
		_exit(exit_code_of(child));
	}
	result = exit_code_of(child);
	scratch_deinit(&scratch);
	if (result == NO_CHROOT) {
		print_message("skipped: this user can make no chroot in a mount namespace\n");
		skip();
	}
	assert_int_equal(result, KNOWN);
}

static void test_chroot(void **state)
{
	check_chroot(0);
}

static void test_chroot_without_others(void **state)
{
	check_chroot(CLONE_NEWPID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_of_another_namespace),
		cmocka_unit_test(test_overlays),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_chroot),
		cmocka_unit_test(test_chroot_without_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
