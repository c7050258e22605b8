/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <string.h>

#include "base/library.h"

/* The variant of the program in one static file, beside the usual one. */
bool no_loading_built_in(void);
int no_load(const char *soname, struct err *err, void **out);
void *no_function(void *library, const char *name);
#define STATIC_BUILD
#define library_loading_built_in no_loading_built_in
#define library_load no_load
#define library_function no_function
#include "base/library.c"
#undef library_loading_built_in
#undef library_load
#undef library_function

static void test_loaded(void **state)
{
	struct err err = {0};
	double (*cosine)(double x);
	void *library;

	assert_true(library_loading_built_in());
	assert_int_equal(library_load("libm.so.6", &err, &library), 0);
	cosine = (double (*)(double))library_function(library, "cos");
	assert_non_null(cosine);
	assert_true(cosine(0) == 1);
	assert_null(library_function(library, "no_such_function"));
}

static void test_missing(void **state)
{
	struct err err = {0};
	void *library;

	assert_int_equal(library_load("libno_such_library.so.1", &err, &library), -ENOSYS);
	assert_non_null(strstr(err.msg, "libno_such_library.so.1"));
}

static void test_static(void **state)
{
	struct err err = {0};
	void *library;

	assert_false(no_loading_built_in());
	assert_int_equal(no_load("libm.so.6", &err, &library), -ENOSYS);
	assert_string_equal(err.msg, "this stakeout is one static file, which cannot load libm.so.6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loaded),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_static),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
