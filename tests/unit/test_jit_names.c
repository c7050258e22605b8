/* SPDX-License-Identifier: MIT */
#include "jit_child.h"

#include "symbol/jit_names.h"

struct fixture {
	struct jit_child child;
	struct notes notes;
	struct jit_names *names;
	struct calls calls;
};

static void prepare(struct fixture *f)
{
	*f = (struct fixture){0};
	jit_child_prepare(&f->child, jit_child_body);
}

static void start(struct fixture *f, bool saved)
{
	jit_child_open(&f->child, saved);
	f->names = jit_names_create(f->child.target, &f->notes);
	assert_non_null(f->names);
}

static void finish(struct fixture *f)
{
	jit_names_destroy(f->names);
	notes_deinit(&f->notes);
	vec_deinit(&f->calls);
	jit_child_finish(&f->child);
}

static const char *name_at(struct fixture *f, uint64_t address)
{
	return jit_names_find(f->names, address, &f->calls) ? f->calls.data[0].linkage : NULL;
}

static void test_perf_map(void **state)
{
	struct fixture f;

	prepare(&f);
	jit_child_write_map(&f.child, "1000 100 mapped\n");
	start(&f, false);
	assert_string_equal(name_at(&f, 0x1080), "mapped");
	assert_int_equal(f.calls.data[0].source, SYMBOL_PERF_MAP);
	assert_null(name_at(&f, 0x2000));
	assert_int_equal(f.calls.len, 0);
	assert_int_equal(f.notes.len, 0);
	finish(&f);
}

static void test_jitdump_comes_first(void **state)
{
	struct fixture f;

	prepare(&f);
	jit_child_write_map(&f.child, "1000 100 mapped\n2000 100 only here\n");
	jit_child_write_dump(&f.child);
	start(&f, false);
	assert_string_equal(name_at(&f, 0x1080), "dumped");
	assert_int_equal(f.calls.data[0].source, SYMBOL_JITDUMP);
	assert_string_equal(name_at(&f, 0x2000), "only here");
	assert_int_equal(f.notes.len, 0);
	finish(&f);
}

static void test_nothing(void **state)
{
	struct fixture f;

	prepare(&f);
	start(&f, false);
	assert_null(name_at(&f, 0x1000));
	assert_int_equal(f.notes.len, 0); /* that is normal */
	finish(&f);
	jit_names_destroy(NULL);
}

/* The files of this machine are not those of a process that was recorded, maybe elsewhere. */
static void test_replayed(void **state)
{
	struct fixture f;

	prepare(&f);
	jit_child_write_map(&f.child, "1000 100 mapped\n");
	jit_child_write_dump(&f.child);
	start(&f, true);
	assert_null(name_at(&f, 0x1000));
	finish(&f);
}

static void expect_one_note(struct fixture *f, const char *text)
{
	assert_null(name_at(f, 0x1000));
	assert_null(name_at(f, 0x1001));
	assert_int_equal(f->notes.len, 1);
	if (!strstr(f->notes.data[0], text))
		fail_msg("'%s' is not in '%s'", text, f->notes.data[0]);
}

static void test_somebody_elses_file(void **state)
{
	struct fixture f;

	jit_child_needs_root();
	prepare(&f);
	jit_child_write_map(&f.child, "1000 100 forged\n");
	assert_int_equal(chown(f.child.map, SOMEBODY, SOMEBODY), 0);
	start(&f, false);
	expect_one_note(&f, "belongs to user 54321");
	finish(&f);

	prepare(&f);
	jit_child_write_dump(&f.child);
	assert_int_equal(chown(f.child.dump, SOMEBODY, SOMEBODY), 0);
	start(&f, false);
	expect_one_note(&f, "belongs to user 54321");
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
	expect_one_note(&f, "before the process began");
	finish(&f);
}

static void test_no_regular_file(void **state)
{
	struct fixture f;

	prepare(&f);
	assert_int_equal(mkfifo(f.child.map, 0644), 0);
	start(&f, false);
	expect_one_note(&f, "not a regular file");
	finish(&f);
}

static void test_damaged_dump(void **state)
{
	struct fixture f;

	prepare(&f);
	jit_child_write(f.child.dump, "this is something else", 22);
	start(&f, false);
	expect_one_note(&f, "not a jitdump file");
	assert_non_null(strstr(f.notes.data[0], f.child.dump));
	finish(&f);
}

/* Names that come later are not looked for: the files were read when the first address was asked for. */
static void test_reads_once(void **state)
{
	struct fixture f;

	prepare(&f);
	start(&f, false);
	assert_null(name_at(&f, 0x1080));
	jit_child_write_map(&f.child, "1000 100 late\n");
	assert_null(name_at(&f, 0x1080));
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_perf_map),
		cmocka_unit_test(test_jitdump_comes_first),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_replayed),
		cmocka_unit_test(test_somebody_elses_file),
		cmocka_unit_test(test_stale_map),
		cmocka_unit_test(test_no_regular_file),
		cmocka_unit_test(test_damaged_dump),
		cmocka_unit_test(test_reads_once),
	};

	return cmocka_run_group_tests_name("jit_names", tests, NULL, NULL);
}
