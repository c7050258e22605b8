/* SPDX-License-Identifier: MIT */
#include "jit_child.h"

#include <errno.h>

#include "target/jit_files.h"

enum { MAX_SEEN = 40 };

struct seen {
	enum jit_file_kind kind;
	char path[128];
	char text[64]; /* the first bytes, when it can be read */
	bool usable;
	struct err problem;
};

struct fixture {
	struct jit_child child;
	struct seen seen[MAX_SEEN];
	size_t len;
	enum jit_file_kind enough; /* of this kind the first usable one */
};

static bool visit(void *arg, const struct jit_file *file)
{
	struct fixture *f = arg;
	struct seen *seen = &f->seen[f->len++];

	assert_true(f->len <= MAX_SEEN);
	seen->kind = file->kind;
	snprintf(seen->path, sizeof(seen->path), "%s", file->path);
	assert_non_null(file->problem);
	seen->problem = *file->problem;
	seen->usable = file->fd >= 0;
	assert_int_equal(seen->problem.code == 0, seen->usable);
	if (seen->usable) {
		assert_true(read(file->fd, seen->text, sizeof(seen->text) - 1) >= 0);
		close(file->fd); /* it is the visitor's */
	}
	return seen->usable && file->kind == f->enough;
}

static void prepare(struct fixture *f)
{
	*f = (struct fixture){.enough = JIT_FILE_PERF_MAP};
	jit_child_prepare(&f->child, jit_child_body);
}

static void start(struct fixture *f, bool saved)
{
	jit_child_open(&f->child, saved);
	jit_files_visit(f->child.target, visit, f);
}

static void finish(struct fixture *f)
{
	jit_child_finish(&f->child);
}

static void test_none(void **state)
{
	struct fixture f;

	prepare(&f);
	start(&f, false);
	assert_int_equal(f.len, 0);
	finish(&f);
}

static void test_dumps_come_first(void **state)
{
	struct fixture f;

	prepare(&f);
	jit_child_write_map(&f.child, "1000 100 mapped\n");
	jit_child_write(f.child.dump, "a dump", 6); /* what is in it is for others to judge */
	start(&f, false);
	assert_int_equal(f.len, 2);
	assert_int_equal(f.seen[0].kind, JIT_FILE_DUMP);
	assert_string_equal(f.seen[0].path, f.child.dump);
	assert_string_equal(f.seen[0].text, "a dump");
	assert_int_equal(f.seen[1].kind, JIT_FILE_PERF_MAP);
	assert_string_equal(f.seen[1].path, f.child.map);
	assert_string_equal(f.seen[1].text, "1000 100 mapped\n");
	finish(&f);
}

/* The same file is found below its root and below ours; who has enough is not shown it again. */
static void test_enough(void **state)
{
	struct fixture f;

	prepare(&f);
	jit_child_write_map(&f.child, "1000 100 mapped\n");
	jit_child_write(f.child.dump, "a dump", 6);
	f.enough = JIT_FILE_DUMP; /* which ends only the search for dumps */
	start(&f, false);
	assert_true(f.len > 2);
	assert_int_equal(f.seen[0].kind, JIT_FILE_DUMP);
	for (size_t i = 1; i < f.len; i++) {
		assert_int_equal(f.seen[i].kind, JIT_FILE_PERF_MAP);
		assert_string_equal(f.seen[i].text, "1000 100 mapped\n");
	}
	finish(&f);
}

/* A dump is found by its mapping: it counts under whatever path, also when it is deleted. */
static void test_deleted_dump(void **state)
{
	struct fixture f;

	prepare(&f);
	jit_child_write(f.child.dump, "a dump", 6);
	jit_child_open(&f.child, false);
	unlink(f.child.dump);
	jit_files_visit(f.child.target, visit, &f);
	assert_int_equal(f.len, 1);
	if (f.seen[0].usable)
		assert_string_equal(f.seen[0].text, "a dump");
	else
		assert_non_null(strstr(f.seen[0].problem.msg, "map_files")); /* which is not for everybody */
	finish(&f);
}

static void test_unmapped_dump(void **state)
{
	struct fixture f;

	prepare(&f);
	jit_child_open(&f.child, false);
	jit_child_write(f.child.dump, "a dump", 6);
	jit_files_visit(f.child.target, visit, &f);
	assert_int_equal(f.len, 0);
	finish(&f);
}

/* The files of this machine are not those of a process that was recorded, maybe elsewhere. */
static void test_saved(void **state)
{
	struct fixture f;

	prepare(&f);
	jit_child_write_map(&f.child, "1000 100 mapped\n");
	jit_child_write(f.child.dump, "a dump", 6);
	start(&f, true);
	assert_int_equal(f.len, 0);
	finish(&f);
}

/* What it left is still its own as long as nobody else can have written it. */
static void test_ended(void **state)
{
	struct fixture f;

	prepare(&f);
	jit_child_write_map(&f.child, "1000 100 mapped\n");
	jit_child_open(&f.child, false);
	child_end(f.child.pid);
	f.child.pid = 0;
	jit_files_visit(f.child.target, visit, &f);
	assert_int_equal(f.len, 1);
	assert_string_equal(f.seen[0].text, "1000 100 mapped\n");
	finish(&f);
}

static void expect_refused(struct fixture *f, enum jit_file_kind kind, const char *why)
{
	assert_true(f->len >= 1);
	for (size_t i = 0; i < f->len; i++) {
		assert_int_equal(f->seen[i].kind, kind);
		assert_false(f->seen[i].usable);
		if (!strstr(f->seen[i].problem.msg, why))
			fail_msg("'%s' is not in '%s'", why, f->seen[i].problem.msg);
	}
}

static void test_somebody_elses_file(void **state)
{
	struct fixture f;

	jit_child_needs_root();
	prepare(&f);
	jit_child_write_map(&f.child, "1000 100 forged\n");
	assert_int_equal(chown(f.child.map, SOMEBODY, SOMEBODY), 0);
	start(&f, false);
	expect_refused(&f, JIT_FILE_PERF_MAP, "belongs to user 54321");
	finish(&f);

	prepare(&f);
	jit_child_write(f.child.dump, "a dump", 6);
	assert_int_equal(chown(f.child.dump, SOMEBODY, SOMEBODY), 0);
	start(&f, false);
	expect_refused(&f, JIT_FILE_DUMP, "belongs to user 54321");
	finish(&f);
}

/* What belongs to the owner of the process is as good as the process, and so is what is root's. */
static void test_the_owners_file(void **state)
{
	static const uid_t owners[] = {SOMEBODY, 0};

	jit_child_needs_root();
	for (size_t i = 0; i < 2; i++) {
		struct fixture f = {.enough = JIT_FILE_PERF_MAP};

		jit_child_prepare(&f.child, jit_child_of_somebody);
		jit_child_write_map(&f.child, "1000 100 mapped\n");
		jit_child_write(f.child.dump, "a dump", 6);
		assert_int_equal(chown(f.child.map, owners[i], owners[i]), 0);
		assert_int_equal(chown(f.child.dump, owners[i], owners[i]), 0);
		start(&f, false);
		assert_int_equal(f.len, 2);
		assert_string_equal(f.seen[0].text, "a dump");
		assert_string_equal(f.seen[1].text, "1000 100 mapped\n");
		finish(&f);
	}
}

/* Somebody's process, and a file of somebody else again. */
static void test_neither_owner(void **state)
{
	struct fixture f = {.enough = JIT_FILE_PERF_MAP};

	jit_child_needs_root();
	jit_child_prepare(&f.child, jit_child_of_somebody);
	jit_child_write_map(&f.child, "1000 100 forged\n");
	assert_int_equal(chown(f.child.map, SOMEBODY + 1, SOMEBODY), 0);
	start(&f, false);
	expect_refused(&f, JIT_FILE_PERF_MAP, "belongs to user 54322");
	finish(&f);
}

/* Written before the process began: by another one that had its number. */
static void test_stale_map(void **state)
{
	const struct timespec times[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct fixture f;

	prepare(&f);
	jit_child_write_map(&f.child, "1000 100 stale\n");
	assert_int_equal(utimensat(AT_FDCWD, f.child.map, times, 0), 0);
	start(&f, false);
	expect_refused(&f, JIT_FILE_PERF_MAP, "before the process began");
	finish(&f);
}

/* A dump's age does not matter: the process has it mapped. */
static void test_old_dump(void **state)
{
	const struct timespec times[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct fixture f;

	prepare(&f);
	jit_child_write(f.child.dump, "a dump", 6);
	assert_int_equal(utimensat(AT_FDCWD, f.child.dump, times, 0), 0);
	start(&f, false);
	assert_int_equal(f.len, 1);
	assert_true(f.seen[0].usable);
	finish(&f);
}

/* Whoever opens it must not wait for somebody to write. */
static void test_no_regular_file(void **state)
{
	struct fixture f;

	prepare(&f);
	assert_int_equal(mkfifo(f.child.map, 0644), 0);
	start(&f, false);
	expect_refused(&f, JIT_FILE_PERF_MAP, "not a regular file");
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_dumps_come_first),
		cmocka_unit_test(test_enough),
		cmocka_unit_test(test_deleted_dump),
		cmocka_unit_test(test_unmapped_dump),
		cmocka_unit_test(test_saved),
		cmocka_unit_test(test_ended),
		cmocka_unit_test(test_somebody_elses_file),
		cmocka_unit_test(test_the_owners_file),
		cmocka_unit_test(test_neither_owner),
		cmocka_unit_test(test_stale_map),
		cmocka_unit_test(test_old_dump),
		cmocka_unit_test(test_no_regular_file),
	};

	return cmocka_run_group_tests_name("jit_files", tests, NULL, NULL);
}
