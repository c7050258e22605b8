/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"
#include "scratch.h"

#include <sys/stat.h>

#include "proc/file_place.h"

/* A process that is made of files, with one thread. */
struct fake {
	struct scratch scratch;
	struct process process;
	struct mount_list mounts;
};

static void fake_init(struct fake *fake)
{
	scratch_init(&fake->scratch);
	scratch_run(&fake->scratch, "mkdir -p task/7/fd task/7/fdinfo chroot/dev");
	fake->process = (struct process){
		.pid = 7,
		.pidfd = -1,
		.dir_fd = scratch_open(&fake->scratch, ".", O_PATH | O_DIRECTORY),
		.task_fd = scratch_open(&fake->scratch, "task", O_PATH | O_DIRECTORY),
		.mm_fd = scratch_open(&fake->scratch, ".", O_PATH | O_DIRECTORY),
	};
	fake->mounts = (struct mount_list){.process = &fake->process};
}

static void fake_deinit(struct fake *fake)
{
	mount_list_deinit(&fake->mounts);
	process_close(&fake->process);
	scratch_deinit(&fake->scratch);
}

static uint64_t mount_of(const char *path)
{
	struct statx st;

	assert_int_equal(statx(AT_FDCWD, path, 0, STATX_BASIC_STATS | STATX_MNT_ID, &st), 0);
	return st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0;
}

static void expect_place(struct fake *fake, const char *path, const char *filesystem)
{
	struct arena *arena = arena_create();
	struct file_place place;

	scratch_run(&fake->scratch, "ln -sfn %s task/7/fd/3", path);
	assert_true(file_place_read(&fake->mounts, 7, 3, arena, &place));
	assert_string_equal(place.path, path);
	assert_non_null(place.filesystem);
	assert_string_equal(place.filesystem, filesystem);
	arena_destroy(arena);
}

/* A driver may take its time to tell how its device is: its fdinfo is not read, nor that of one in a chroot. */
static void test_devices(void **state)
{
	struct fake fake;
	char text[512], path[128];

	fake_init(&fake);
	snprintf(path, sizeof(path), "%s/chroot/dev/null", fake.scratch.dir);
	scratch_text(&fake.scratch, "chroot/dev/null", "");
	if (!mount_of("/dev/zero") || !mount_of(path))
		skip(); /* statx() tells no mounts before Linux 5.8 */
	snprintf(text, sizeof(text), "999999 1 0:9 / / rw - theirs none rw\n%llu 1 0:5 / /dev rw - ours none rw\n%llu 1 0:6 / / rw - ours none rw\n",
		 (unsigned long long)mount_of("/dev/zero"), (unsigned long long)mount_of(path));
	scratch_text(&fake.scratch, "mountinfo", text);
	scratch_text(&fake.scratch, "task/7/fdinfo/3", "pos:\t0\nflags:\t02\nmnt_id:\t999999\n");
	expect_place(&fake, fake.scratch.dir, "theirs");
	expect_place(&fake, "/dev/zero", "ours");
	expect_place(&fake, path, "ours");
	fake_deinit(&fake);
}

static void test_paths_and_devices(void **state)
{
	struct arena *arena = arena_create();
	struct file_place place;
	struct fake fake;

	fake_init(&fake);
	scratch_text(&fake.scratch, "mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:7 / /srv rw - nfs host:/a rw\n3 1 0:8 / /srv rw - nfs4 host:/b rw\n"
						 "4 1 0:8 / /srv/deep rw - cifs //host/c rw\n");
	assert_true(file_place_of_path(&fake.mounts, "/srv/file", arena, &place));
	assert_string_equal(place.filesystem, "nfs4"); /* the other one is below it */
	assert_string_equal(place.device, "host:/b");
	assert_true(file_place_of_path(&fake.mounts, "/srv/deep", arena, &place));
	assert_string_equal(place.filesystem, "cifs");
	assert_true(file_place_of_path(&fake.mounts, "/srvfile", arena, &place));
	assert_string_equal(place.filesystem, "ext4");
	assert_false(file_place_of_path(&fake.mounts, "file", arena, &place));
	assert_true(file_place_of_device(&fake.mounts, 0, 8, "x", arena, &place));
	assert_string_equal(place.filesystem, "cifs");
	assert_string_equal(place.path, "x");
	assert_false(file_place_of_device(&fake.mounts, 0, 9, NULL, arena, &place));
	scratch_text(&fake.scratch, "mountinfo", ""); /* which was read */
	assert_true(file_place_of_path(&fake.mounts, "/file", arena, &place));
	fake_deinit(&fake);
	arena_destroy(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_paths_and_devices),
	};

	return cmocka_run_group_tests_name("file places", tests, NULL, NULL);
}
