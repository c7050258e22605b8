/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>
#include <unistd.h>

#include "elf/image.h"
#include "offcpu/feed/new_files.h"
#include "target/mapped_file.h"
#include "target/target.h"

struct fixture {
	struct roots *roots;
	struct new_files *files;
	struct target *target;
};

static int start(void **state)
{
	static struct fixture f;

	f = (struct fixture){.roots = roots_create()};
	assert_non_null(f.roots);
	f.files = new_files_create(f.roots);
	*state = &f;
	return f.files && target_open_whole(getpid(), NULL, NULL, &f.target) == 0 ? 0 : -1;
}

static int finish(void **state)
{
	struct fixture *f = *state;

	new_files_destroy(f->files);
	roots_destroy(f->roots);
	target_close(f->target);
	return 0;
}

/* The code of this process that an address is in. */
static const struct map_entry *find(const struct fixture *f, const void *address)
{
	const struct map_entry *entry = maps_find(&f->target->snap->maps, (uintptr_t)address);

	assert_non_null(entry);
	return entry;
}

static void add(struct fixture *f, const struct map_entry *entry)
{
	new_files_add(f->files, f->target, entry, mapped_file_identity(f->target, entry));
}

static void test_smallest_first(void **state)
{
	struct fixture *f = *state;
	const struct map_entry *own = find(f, (const void *)(uintptr_t)start), *libc = find(f, (const void *)(uintptr_t)strdup);
	struct new_file first, second, none;

	add(f, libc);
	add(f, own);
	assert_true(new_files_take(f->files, &first));
	assert_true(new_files_take(f->files, &second));
	assert_false(new_files_take(f->files, &none));
	assert_true(first.st.st_size <= second.st.st_size);
	assert_int_not_equal(strcmp(first.path, second.path), 0);
	assert_true(strcmp(first.path, libc->path) == 0 || strcmp(second.path, libc->path) == 0);
	assert_true(first.fd >= 0 && image_identity_of(&first.st));
	new_files_drop(f->files, &first);
	new_files_drop(f->files, &second);
}

/* A larger one that many have comes before a smaller one that few do. */
static void test_shared_first(void **state)
{
	struct fixture *f = *state;
	const struct map_entry *own = find(f, (const void *)(uintptr_t)start), *libc = find(f, (const void *)(uintptr_t)strdup);
	struct new_file first, second;
	enum { MANY = 10000 };

	for (int turn = 0; turn < 2; turn++) {
		const struct map_entry *shared = turn ? own : libc, *other = turn ? libc : own;
		const uint64_t identity = 100 * (uint64_t)turn;

		new_files_add(f->files, f->target, other, identity + 1);
		for (int i = 0; i < MANY; i++)
			new_files_add(f->files, f->target, shared, identity + 2);
		assert_true(new_files_take(f->files, &first));
		assert_true(new_files_take(f->files, &second));
		assert_string_equal(first.path, shared->path);
		assert_string_equal(second.path, other->path);
		new_files_drop(f->files, &first);
		new_files_drop(f->files, &second);
	}
}

static void test_each_once(void **state)
{
	struct fixture *f = *state;
	const struct map_entry *own = find(f, (const void *)(uintptr_t)start);
	struct map_entry elsewhere = *own;
	struct new_file file;

	add(f, own);
	add(f, own);
	assert_true(new_files_take(f->files, &file));
	assert_true(file.offset == own->offset);
	new_files_drop(f->files, &file);
	add(f, own); /* nor when it was taken */
	assert_false(new_files_take(f->files, &file));
	elsewhere.offset += (uint64_t)sysconf(_SC_PAGESIZE);
	add(f, &elsewhere); /* mapped from another place, its address is another */
	assert_true(new_files_take(f->files, &file));
	new_files_drop(f->files, &file);
}

/* Who does not come to making tables does not keep all descriptors. */
static void test_bounded(void **state)
{
	struct fixture *f = *state;
	const struct map_entry *own = find(f, (const void *)(uintptr_t)start);
	struct new_file file;
	unsigned n = 0;

	for (uint64_t identity = 1; identity < 1000; identity++)
		new_files_add(f->files, f->target, own, identity);
	for (; new_files_take(f->files, &file); n++)
		new_files_drop(f->files, &file);
	assert_in_range(n, 1, 999 - 1);
	new_files_add(f->files, f->target, own, 999); /* it was not opened before */
	assert_true(new_files_take(f->files, &file));
	new_files_drop(f->files, &file);
}

static void test_no_file(void **state)
{
	struct fixture *f = *state;
	struct map_entry gone = *find(f, (const void *)(uintptr_t)start);
	struct new_file file;

	gone.start += 1; /* nothing is mapped like this */
	gone.inode++;
	gone.path = "/nonexistent";
	new_files_add(f->files, f->target, &gone, 1);
	assert_false(new_files_take(f->files, &file));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_smallest_first, start, finish),
		cmocka_unit_test_setup_teardown(test_shared_first, start, finish),
		cmocka_unit_test_setup_teardown(test_each_once, start, finish),
		cmocka_unit_test_setup_teardown(test_bounded, start, finish),
		cmocka_unit_test_setup_teardown(test_no_file, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
