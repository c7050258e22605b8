/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>

#include "report/shorten.h"

static void expect(const char *name, size_t max, const char *want)
{
	char *got = shorten_name(name, max);

	assert_string_equal(got, want);
	assert_true(text_columns(got) <= max || text_columns(got) < text_columns(name) || text_columns(name) <= max);
	free(got);
}

static void test_fits(void **state)
{
	expect("main", 4, "main");
	expect("a<b, c>::d(int)", 100, "a<b, c>::d(int)");
}

static void test_templates_first(void **state)
{
	expect("map<int, pair<a, b> >::find(int const&)", 30, "map<…>::find(int const&)");
	expect("a<long, long>::b<long, long>(x)", 20, "a<…>::b<…>(x)");
	expect("map<int, pair<a, b> >::find(int const&)", 20, "map<…>::find(…)");
}

static void test_operators(void **state)
{
	expect("operator<< <std::char_traits<char> >(a, b)", 25, "operator<< <…>(a, b)");
	expect("Very::Long::Name::operator()(int, int) const", 40, "Very::Long::Name::operator()(…) const");
	expect("Some::Pointer<int, long>::operator->() const", 38, "Some::Pointer<…>::operator->() const");
	expect("(anonymous namespace)::run(int, long)", 35, "(anonymous namespace)::run(…)");
}

static void test_middle(void **state)
{
	expect("abcdefghijklmnopqrstuvwxyz", 10, "abc…uvwxyz");
	expect("abcdefgh", 7, "ab…efgh");
	expect("abcdefgh", 1, "…");
	expect("äöüäöüäöüäöü", 6, "äö…äöü");
	expect("unbalanced<<<<<<<<<<<<<", 9, "unb…<<<<<");
}

static void test_columns(void **state)
{
	assert_int_equal(text_columns(""), 0);
	assert_int_equal(text_columns("a…ä"), 3);
}

static void expect_java(const char *name, size_t max, const char *want)
{
	char *got = shorten_symbol(&(struct frame){.symbol = name, .kind = FRAME_KIND_JAVA}, max);

	assert_string_equal(got, want);
	free(got);
}

/* A class and its method say more than the package. */
static void test_java(void **state)
{
	static const char name[] = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await";
	char *native = shorten_symbol(&(struct frame){.symbol = "some.library.name"}, 10);

	expect_java(name, 100, name);
	expect_java(name, 70, "AbstractQueuedSynchronizer$ConditionObject.await");
	expect_java(name, 20, "Abstra…nObject.await");
	expect_java("a.method", 4, "a…od");
	expect_java("nothing", 4, "n…ng");
	assert_string_equal(native, "som…y.name");
	free(native);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_java),      cmocka_unit_test(test_fits),   cmocka_unit_test(test_templates_first),
		cmocka_unit_test(test_operators), cmocka_unit_test(test_middle), cmocka_unit_test(test_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
