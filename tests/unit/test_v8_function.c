/* SPDX-License-Identifier: MIT */
#include "v8make.h"

#include "runtime/v8/function.h"

static struct v8make m;
static uint64_t undefined, outer, script;

static int set_up(void **state)
{
	v8make_init(&m);
	undefined = v8make_object(&m, V8MAKE_TYPE_ODDBALL, 16);
	outer = v8make_object(&m, V8MAKE_TYPE_SCOPE, 16);
	script = v8make_script(&m, v8make_string(&m, "/srv/app.js"), v8make_string(&m, "function f() {}"));
	return 0;
}

static int tear_down(void **state)
{
	v8make_deinit(&m);
	return 0;
}

static bool read_function(const struct heap *heap, uint64_t function, struct js_function *out)
{
	uint64_t shared;

	return js_function_shared(heap, function, &shared) && js_shared_read(heap, shared, out);
}

static uint64_t small(int32_t value)
{
	return v8make_small(value);
}

static void expect(uint64_t function, const char *name, const char *file, int64_t start)
{
	struct js_function found;

	assert_true(read_function(&m.heap, function, &found));
	assert_string_equal(found.name, name);
	assert_string_equal(found.file, file);
	assert_int_equal(found.has_start ? (int64_t)found.start : -1, start);
}

/* Flags, parameters, variables; the name and where that is kept; a guessed name; from and to; the scope around. */
static void test_scope(void **state)
{
	const uint64_t slots[] = {small(77), small(1), small(0), v8make_string(&m, "take"), small(-1), undefined, small(17), small(67),
				  outer};
	const uint64_t no_guess[] = {small(77), small(1), small(0), v8make_string(&m, "take"), small(-1), small(17), small(67), outer};
	uint64_t f = v8make_function(&m, v8make_scope(&m, slots, 9), script);
	uint64_t g = v8make_function(&m, v8make_scope(&m, no_guess, 8), script);

	v8make_finish(&m);
	expect(f, "take", "/srv/app.js", 17);
	expect(g, "take", "/srv/app.js", 17);
}

static void test_guessed_name(void **state)
{
	const uint64_t slots[] = {small(77), small(1), small(0), v8make_string(&m, ""), small(-1), v8make_string(&m, "Module.load"),
				  small(17), small(67), outer};
	const uint64_t none[] = {small(77), small(1), small(0), v8make_string(&m, ""), small(-1), undefined, small(17), small(67),
				 outer};
	uint64_t f = v8make_function(&m, v8make_scope(&m, slots, 9), script);
	uint64_t g = v8make_function(&m, v8make_scope(&m, none, 9), script);

	v8make_finish(&m);
	expect(f, "Module.load", "/srv/app.js", 17);
	expect(g, "", "/srv/app.js", 17);
}

/* A name and a number for each variable; of many, the names are in a table of their own. */
static void test_variables(void **state)
{
	uint64_t slots[3 + 2 * 80 + 6] = {small(77), small(1), small(2)}, many[3 + 1 + 80 + 6] = {small(77), small(1), small(80)};
	const uint64_t rest[] = {v8make_string(&m, "f"), small(3), undefined, small(5), small(9), outer};
	uint64_t variable = v8make_string(&m, "variable"), f, g;

	for (size_t i = 0; i < 2; i++) {
		slots[3 + i] = variable;
		slots[5 + i] = small(4);
	}
	memcpy(slots + 7, rest, sizeof(rest));
	many[3] = v8make_object(&m, 300, 16);
	for (size_t i = 0; i < 80; i++)
		many[4 + i] = small(4);
	memcpy(many + 84, rest, sizeof(rest));
	f = v8make_function(&m, v8make_scope(&m, slots, 13), script);
	g = v8make_function(&m, v8make_scope(&m, many, 90), script);
	v8make_finish(&m);
	expect(f, "f", "/srv/app.js", 5);
	expect(g, "f", "/srv/app.js", 5);
}

/* From 13 on where it begins and ends comes first. */
static void test_newer_scope(void **state)
{
	const uint64_t slots[] = {small(77), small(1), small(0), small(40), small(50), v8make_string(&m, "f"), small(-1), outer};
	uint64_t f = v8make_function(&m, v8make_scope(&m, slots, 8), script);

	m.layout.facts[V8_SCOPE_FIRST_VARS] = 5;
	v8make_finish(&m);
	expect(f, "f", "/srv/app.js", 40);
}

static void test_builtin(void **state)
{
	uint64_t f = v8make_function(&m, v8make_string(&m, "map"), undefined), g = v8make_function(&m, small(0), undefined);
	struct js_function found;

	v8make_finish(&m);
	expect(f, "map", "", -1);
	expect(g, "", "", -1);
	assert_true(read_function(&m.heap, f, &found));
	assert_false(found.has_script);
}

/* Whatever a program has called its script. */
static void test_script_names(void **state)
{
	uint64_t odd = v8make_function(&m, v8make_string(&m, "f"), v8make_script(&m, undefined, undefined));
	uint64_t number = v8make_function(&m, v8make_string(&m, "f"), v8make_script(&m, small(7), undefined));

	v8make_finish(&m);
	expect(odd, "f", "", -1);
	expect(number, "f", "", -1);
}

static void test_hostile(void **state)
{
	const uint64_t huge[] = {small(77), small(1), small(INT32_MAX)}, negative[] = {small(77), small(1), small(-5)};
	const uint64_t no_number[] = {small(77), small(1), outer};
	uint64_t string = v8make_string(&m, "f"), bad[6];
	struct js_function found;

	bad[0] = v8make_function(&m, v8make_scope(&m, huge, 3), script);
	bad[1] = v8make_function(&m, v8make_scope(&m, negative, 3), script);
	bad[2] = v8make_function(&m, v8make_scope(&m, no_number, 3), script);
	bad[3] = v8make_function(&m, script, script); /* a name that is none */
	bad[4] = v8make_object(&m, V8MAKE_TYPE_FUNCTION, 64);
	v8make_put(&m, bad[4], 24, string); /* shares a string */
	bad[5] = string;
	v8make_finish(&m);
	for (size_t i = 0; i < 6; i++)
		assert_false(read_function(&m.heap, bad[i], &found));
	assert_false(read_function(&m.heap, 0, &found));
	assert_false(read_function(&m.heap, UINT64_MAX - 2, &found));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_scope),	TEST(test_guessed_name), TEST(test_variables), TEST(test_newer_scope), TEST(test_builtin),
		TEST(test_script_names), TEST(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
