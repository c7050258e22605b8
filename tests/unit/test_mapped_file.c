/* SPDX-License-Identifier: MIT */
/* Files that this process has mapped; test_modules.c looks at real libraries of another one. */
#include "scratch.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "target/mapped_file.h"
#include "target/target.h"

enum { PAGE = 65536 };

struct fixture {
	struct scratch scratch;
	char path[128];
	void *mapping;
	struct target *target;
	struct map_entry entry;
};

static void find_entry(struct fixture *f)
{
	const struct map_entry *entry;

	assert_int_equal(target_read_map(f->target, NULL), 0);
	entry = maps_find(&f->target->snap->maps, (uintptr_t)f->mapping);
	assert_non_null(entry);
	f->entry = *entry;
}

static void start(struct fixture *f)
{
	int fd;

	*f = (struct fixture){0};
	scratch_init(&f->scratch);
	snprintf(f->path, sizeof(f->path), "%s/file", f->scratch.dir);
	scratch_text(&f->scratch, "file", "the file that is mapped");
	fd = scratch_open(&f->scratch, "file", O_RDONLY);
	f->mapping = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(f->mapping != MAP_FAILED);
	close(fd);
	assert_int_equal(target_open(getpid(), NULL, &f->target), 0);
	find_entry(f);
}

static void finish(struct fixture *f)
{
	target_close(f->target);
	munmap(f->mapping, PAGE);
	scratch_deinit(&f->scratch);
}

static void expect_text(int fd, const char *text)
{
	char buf[64] = "";

	assert_true(fd >= 0);
	assert_true(read(fd, buf, sizeof(buf) - 1) >= 0);
	assert_string_equal(buf, text);
	close(fd);
}

static void test_mapped(void **state)
{
	struct fixture f;
	uint64_t identity;
	struct stat st;
	int fd;

	start(&f);
	expect_text(mapped_file_open(f.target, &f.entry, false, NULL, NULL), "the file that is mapped");
	fd = scratch_open(&f.scratch, "file", O_PATH);
	identity = mapped_file_identity(f.target, &f.entry);
	assert_int_equal(fstat(fd, &st), 0);
	if (identity)
		assert_int_equal(identity, image_identity_of(&st));
	close(fd);
	finish(&f);
}

/* Without map_files, which are not for everybody: another address has none. */
static void test_by_path(void **state)
{
	struct fixture f;
	struct err err = {0};

	start(&f);
	f.entry.end += PAGE;
	assert_int_equal(mapped_file_identity(f.target, &f.entry), 0);
	expect_text(mapped_file_open(f.target, &f.entry, false, NULL, NULL), "the file that is mapped");

	/* Another file there is not it. */
	scratch_run(&f.scratch, "mv file kept && echo another > file");
	assert_int_equal(mapped_file_open(f.target, &f.entry, false, &err, NULL), -ESTALE);
	assert_non_null(strstr(err.msg, "not the one that is mapped"));
	assert_int_equal(mapped_file_open(f.target, &f.entry, true, NULL, NULL), -ESTALE); /* it is not known to be deleted */

	/* What is deleted may be replaced by whatever has its path, for those who say so. */
	f.entry.deleted = true;
	assert_true(mapped_file_open(f.target, &f.entry, false, &err, NULL) < 0);
	assert_non_null(strstr(err.msg, "--ignore-deleted"));
	expect_text(mapped_file_open(f.target, &f.entry, true, NULL, NULL), "another\n");

	f.entry.deleted = false;
	scratch_run(&f.scratch, "rm file");
	assert_int_equal(mapped_file_open(f.target, &f.entry, false, NULL, NULL), -ENOENT);
	scratch_run(&f.scratch, "mkfifo file"); /* and nobody waits for a writer */
	assert_int_equal(mapped_file_open(f.target, &f.entry, false, &err, NULL), -EINVAL);
	assert_non_null(strstr(err.msg, "not a regular file"));
	finish(&f);
}

static void test_deleted(void **state)
{
	struct fixture f;
	struct err err = {0};
	int fd;

	start(&f);
	unlink(f.path);
	find_entry(&f);
	assert_true(f.entry.deleted);
	fd = mapped_file_open(f.target, &f.entry, false, &err, NULL);
	if (fd >= 0)
		expect_text(fd, "the file that is mapped");
	else
		assert_non_null(strstr(err.msg, "map_files"));
	finish(&f);
}

static void test_saved(void **state)
{
	struct snapshot *snap = snapshot_create(getpid(), arch_host());
	struct target *saved = target_open_saved(snap);
	struct fixture f;

	start(&f);
	assert_int_equal(mapped_file_open(saved, &f.entry, false, NULL, NULL), -ESRCH);
	assert_int_equal(mapped_file_identity(saved, &f.entry), 0);
	finish(&f);
	target_close(saved);
	snapshot_destroy(snap);
}

/* A file of this machine for one that was recorded: its build-id tells, else its inode. */
static void test_recorded(void **state)
{
	struct image *image = NULL, *self = NULL;
	struct map_entry entry = {.path = "/proc/self/exe"};
	char path[4096] = "";
	struct err err = {0};
	struct stat st;
	int fd;

	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	entry.path = path;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(image_open_fd(fd, NULL, &self), 0);
	entry.build_id = image_build_id(self);
	if (entry.build_id) {
		assert_int_equal(mapped_file_open_recorded(&entry, NULL, &image), 0);
		assert_string_equal(image_build_id(image), entry.build_id);
		image_destroy(image);
		image = NULL;
	}
	entry.build_id = "0123456789abcdef";
	assert_int_equal(mapped_file_open_recorded(&entry, &err, &image), -ESTALE);
	assert_non_null(strstr(err.msg, "build-id differs"));

	entry.build_id = NULL;
	entry.inode = st.st_ino;
	entry.dev_major = major(st.st_dev);
	entry.dev_minor = minor(st.st_dev);
	assert_int_equal(mapped_file_open_recorded(&entry, NULL, &image), 0);
	image_destroy(image);
	image = NULL;
	entry.inode++;
	assert_int_equal(mapped_file_open_recorded(&entry, &err, &image), -ESTALE);
	assert_non_null(strstr(err.msg, "no build-id"));
	assert_null(image);
	image_destroy(self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapped), cmocka_unit_test(test_by_path), cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_saved),  cmocka_unit_test(test_recorded),
	};

	return cmocka_run_group_tests_name("mapped_file", tests, NULL, NULL);
}
