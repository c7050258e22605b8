/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdio.h>

#include "symbol/readable.h"

struct fixture {
	struct arena *arena;
	struct readable *names;
};

static void start(struct fixture *f, bool return_types)
{
	f->arena = arena_create();
	f->names = readable_create(f->arena, return_types);
	assert_non_null(f->names);
}

static void finish(struct fixture *f)
{
	readable_destroy(f->names);
	arena_destroy(f->arena);
}

static void test_one_by_one(void **state)
{
	struct fixture f;
	const char *plain, *mangled;

	start(&f, false);
	plain = arena_intern(f.arena, "main");
	mangled = arena_intern(f.arena, "_Z3addIiET_S0_S0_");
	assert_ptr_equal(readable_name(f.names, plain), plain);
	assert_string_equal(readable_name(f.names, mangled), "add<int>(int, int)");
	assert_ptr_equal(readable_name(f.names, mangled), readable_name(f.names, mangled));
	finish(&f);
	start(&f, true);
	assert_string_equal(readable_name(f.names, arena_intern(f.arena, "_Z3addIiET_S0_S0_")),
			    "int add<int>(int, int)");
	finish(&f);
}

/* More than the cores take at a time; some are asked for that were not announced. */
static void test_many(void **state)
{
	enum { MANY = 1000 };
	static const char *names[MANY];
	struct fixture f;

	start(&f, false);
	for (unsigned i = 0; i < MANY; i++) {
		names[i] = arena_printf(f.arena, i % 3 ? "_ZN1n4f%03uEi" : "plain%u", i);
		if (i % 2)
			assert_true(readable_want(f.names, names[i]));
	}
	readable_prepare(f.names);
	for (unsigned i = 0; i < MANY; i++) {
		char want[32];

		snprintf(want, sizeof(want), i % 3 ? "n::f%03u(int)" : "plain%u", i);
		assert_string_equal(readable_name(f.names, names[i]), want);
	}
	readable_prepare(f.names); /* nothing is left to do */
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_by_one),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests_name("readable", tests, NULL, NULL);
}
