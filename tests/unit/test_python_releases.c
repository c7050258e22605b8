/* SPDX-License-Identifier: MIT */
#include "pymem.h"

#include "runtime/python/releases.h"

/* Code objects, each with its parts behind it. */
enum { BASE = PYMEM_BASE, CODE_SIZE = 0x1000, AT_NAMES = 32, AT_VARIABLES = 40, AT_NAME = 48, AT_FILE = 56, TUPLE = 0x100,
       VARIABLES = 0x180, TEXTS = 0x200, TEXT_SIZE = 0x100 };

struct fixture {
	struct pymem pymem;
	struct python_layout layout;
	struct budget budget;
	struct python_releases releases;
	struct python_chain chain;
};

/* The next function further out: it uses one name, and has one variable. */
static void add(struct fixture *f, const char *name, const char *file, const char *uses)
{
	const uint64_t code = BASE + f->chain.len * CODE_SIZE;

	pymem_put64(&f->pymem, code + AT_NAMES, code + TUPLE);
	pymem_put64(&f->pymem, code + TUPLE + 16, 1);
	pymem_put64(&f->pymem, code + TUPLE + 24, pymem_put_str(&f->pymem, code + TEXTS, uses));
	pymem_put64(&f->pymem, code + AT_VARIABLES, code + VARIABLES);
	pymem_put64(&f->pymem, code + VARIABLES + 16, 1);
	pymem_put64(&f->pymem, code + VARIABLES + 24, pymem_put_str(&f->pymem, code + TEXTS + TEXT_SIZE, "self"));
	pymem_put64(&f->pymem, code + AT_NAME, pymem_put_str(&f->pymem, code + TEXTS + 2 * TEXT_SIZE, name));
	pymem_put64(&f->pymem, code + AT_FILE, pymem_put_str(&f->pymem, code + TEXTS + 3 * TEXT_SIZE, file));
	f->chain.frames[f->chain.len++] = (struct python_frame){.code = code};
}

static void begin(struct fixture *f)
{
	*f = (struct fixture){.pymem.mem.read = pymem_read};
	f->layout.at[PY_VERSION] = 0x030b0000;
	f->layout.at[PY_CODE_NAMES] = AT_NAMES;
	f->layout.at[PY_CODE_VARIABLES] = AT_VARIABLES;
	f->layout.at[PY_CODE_NAME] = AT_NAME;
	f->layout.at[PY_CODE_FILENAME] = AT_FILE;
	f->layout.at[PY_STR_ASCII] = 40;
	f->layout.at[PY_STR_OTHER] = 56;
	f->budget.left = 1000;
	f->releases = (struct python_releases){.layout = &f->layout, .mem = &f->pymem.mem, .arena = arena_create(), .budget = &f->budget};
}

static void end(struct fixture *f)
{
	python_releases_deinit(&f->releases);
	arena_destroy(f->releases.arena);
}

/* Of the outermost function, and those that it has called. */
static bool releases_nothing(struct fixture *f)
{
	struct python_release_walk walk = {0};

	return python_releases_nothing(&f->releases, &f->chain, f->chain.len - 1, &walk);
}

static const char wait_file[] = "/lib/python3/threading.py", program[] = "/srv/app.py";

static void test_names(void **state)
{
	static const char *const names[] = {"release", "releases", "_release_save", "__exit__", "unlock", "Unlocked"};
	struct fixture f;

	begin(&f);
	add(&f, "inner", program, "acquire");
	add(&f, "outer", program, "print");
	assert_true(releases_nothing(&f));
	end(&f);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		begin(&f);
		add(&f, "inner", program, names[i]);
		add(&f, "outer", program, "print");
		assert_false(releases_nothing(&f));
		assert_false(python_releases_is_wait(&f.releases, f.chain.frames[0].code));
		end(&f);
	}
}

/* By whom Condition.wait() is called. */
static void test_wait(void **state)
{
	static const struct {
		const char *name, *file;
		bool own;
	} callers[] = {
		{"wait", "/lib/python3/threading.py", true},	      {"get", "/lib/python3/queue.py", true},
		{"result", "/lib/python3/concurrent/futures/_base.py", true}, {"wait_for", "/lib/python3/threading.py", false},
		{"get", "/srv/queue.py", false},		      {"get", "/lib/python3/site-packages/queue.py", false},
		{"serve", "/srv/app.py", false},
	};

	for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
		struct fixture f;

		begin(&f);
		add(&f, "wait", wait_file, "_release_save");
		assert_true(python_releases_is_wait(&f.releases, f.chain.frames[0].code));
		add(&f, callers[i].name, callers[i].file, "wait");
		add(&f, "outer", program, "print");
		assert_int_equal(releases_nothing(&f), callers[i].own);
		end(&f);
	}
}

/* What the library has in its own blocks it may let go of; and one function further out does so. */
static void test_own_blocks(void **state)
{
	struct fixture f;

	begin(&f);
	add(&f, "wait", wait_file, "_release_save");
	add(&f, "wait", wait_file, "_cond");
	assert_false(releases_nothing(&f));
	add(&f, "outer", program, "print");
	assert_true(releases_nothing(&f));
	add(&f, "outermost", program, "release");
	assert_false(releases_nothing(&f));
	end(&f);
}

/* One that lets go of something when it is called is in the middle of that. */
static void test_own_name(void **state)
{
	struct fixture f;

	begin(&f);
	add(&f, "__exit__", program, "acquire");
	add(&f, "outer", program, "print");
	assert_false(releases_nothing(&f));
	end(&f);
}

/* Thread.join(), up to 3.12. */
static void test_end_of_thread(void **state)
{
	struct fixture f;

	begin(&f);
	add(&f, "_wait_for_tstate_lock", wait_file, "release");
	add(&f, "join", wait_file, "_wait_for_tstate_lock");
	add(&f, "outer", program, "join");
	assert_true(releases_nothing(&f));
	end(&f);
	begin(&f);
	add(&f, "_wait_for_tstate_lock", program, "release");
	add(&f, "outer", program, "join");
	assert_false(releases_nothing(&f));
	end(&f);
}

/* So many functions are looked at; those that were are known ever after. */
static void test_work(void **state)
{
	struct fixture f;

	begin(&f);
	f.budget.left = 4; /* two names of the code, its own, and its file's */
	add(&f, "inner", program, "print");
	assert_true(releases_nothing(&f));
	assert_false(f.budget.refused);
	assert_true(releases_nothing(&f));
	add(&f, "outer", program, "print");
	assert_false(releases_nothing(&f));
	assert_true(f.budget.refused);
	end(&f);
}

/* What cannot be read may be anything. */
static void test_unknown(void **state)
{
	struct fixture f;

	begin(&f);
	add(&f, "inner", program, "print");
	pymem_put64(&f.pymem, BASE + TUPLE + 24, 0x5000000);
	assert_false(releases_nothing(&f));
	end(&f);
	begin(&f);
	add(&f, "inner", program, "print");
	f.layout.at[PY_CODE_NAMES] = 0;
	assert_false(releases_nothing(&f));
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_own_blocks),
		cmocka_unit_test(test_own_name),
		cmocka_unit_test(test_end_of_thread),
		cmocka_unit_test(test_work),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
