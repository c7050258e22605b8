/* SPDX-License-Identifier: MIT */
#include "v8make.h"

#include "runtime/v8/names.h"

/* Functions of V8 11.3: outer() calls inner() in its bytecode 5, which calls something in its bytecode 3. */
enum { BEGIN = 2, INTERPRETED_ALONE = 24, BUILTIN = 25, LITERAL = 29, PC = 32, SLOTS = 11 + 3 };
#define SIGNED(n) ((n) * 2)

struct made {
	struct v8_place place;
	struct v8make_code code;
	uint64_t data, literals, outer, inner, inner_bytecode, builtin;
};

static uint64_t shared_of(uint64_t function)
{
	uint64_t shared;

	memcpy(&shared, v8made.bytes + (function - 1 - V8MAKE_BASE) + 24, sizeof(shared));
	return shared;
}

/* Ten bytes of bytecode, where those from `at` on are at that position of the script. */
static uint64_t make_bytecode(uint8_t at, uint8_t position)
{
	const uint8_t table[] = {(uint8_t)(2 * (at + 1)), (uint8_t)(4 * (position + 1))};
	const uint8_t bytes[10] = {0};

	return v8make_bytecode(&v8made, bytes, sizeof(bytes), v8make_bytes(&v8made, table, sizeof(table)));
}

static uint64_t make_function(const char *name, uint64_t script, uint64_t bytecode)
{
	uint64_t function = v8make_function(&v8made, v8make_string(&v8made, name), script);

	v8make_put(&v8made, shared_of(function), 8, bytecode);
	return function;
}

static struct made make(void)
{
	static const uint8_t safepoints[] = {1, 0, 0, 0, 1 | 1 << 4 | 1 << 7, 0, 0, 0, PC, 1, 0};
	static const uint8_t translation[] = {
		BEGIN, 0, SIGNED(3), SIGNED(3), INTERPRETED_ALONE, SIGNED(5), SIGNED(0), 0,
		BUILTIN, SIGNED(60), SIGNED(0), 0, LITERAL, SIGNED(2), INTERPRETED_ALONE, SIGNED(3), SIGNED(1), 0,
	};
	uint64_t source = v8make_string(&v8made, "one\ntwo\nthree\nfour\n"), undefined = v8make_object(&v8made, V8MAKE_TYPE_ODDBALL, 16);
	uint64_t script = v8make_script(&v8made, v8make_string(&v8made, "/a.js"), source), slots[SLOTS] = {0}, literals[3];
	struct made made = {.code = v8make_code(&v8made, V8MAKE_TURBOFAN, 64, safepoints, sizeof(safepoints))};

	made.place = (struct v8_place){.kind = V8_NO_KIND, .pc = made.code.start + PC};
	made.place.function = make_function("outer", script, make_bytecode(5, 4));
	made.inner_bytecode = make_bytecode(3, 8);
	made.outer = literals[0] = shared_of(made.place.function);
	made.inner = literals[1] = shared_of(make_function("inner", script, made.inner_bytecode));
	made.builtin = v8make_function(&v8made, v8make_string(&v8made, "map"), undefined);
	literals[2] = made.builtin | 2; /* weak */
	made.literals = v8make_array(&v8made, V8MAKE_TYPE_WEAK_ARRAY, literals, 3);
	slots[0] = v8make_bytes(&v8made, translation, sizeof(translation));
	slots[2] = made.literals;
	slots[6] = made.outer;
	slots[10] = v8make_small(1); /* entries */
	slots[11 + 2] = v8make_small(PC);
	made.data = v8make_array(&v8made, V8MAKE_TYPE_ARRAY, slots, SLOTS);
	v8make_put(&v8made, made.code.object, 16, made.data);
	return made;
}

static void expect_frame(const struct made *made, const struct v8_call *call, const char *name, uint32_t line)
{
	struct js_frame frame;

	assert_true(js_frame_read(&v8made.heap, &made->place, call, &frame));
	assert_string_equal(frame.name, name);
	assert_string_equal(frame.tier, "compiled");
	assert_int_equal(frame.line, line);
	assert_int_equal(frame.line_kind, LINE_CURRENT);
}

static void test_inlined(void **state)
{
	struct made made = make();
	struct v8_calls calls;

	v8make_finish(&v8made);
	assert_true(v8_place_calls(&v8made.heap, &made.place, &calls));
	assert_int_equal(calls.len, 3);
	expect_frame(&made, &calls.data[0], "inner", 3);
	expect_frame(&made, &calls.data[1], "map", 0);
	expect_frame(&made, &calls.data[2], "outer", 2);
}

/* Names what is shown for the frame: so many. */
static void expect_named(const struct made *made, struct v8_names *names, size_t n, struct v8_named *out)
{
	v8make_finish(&v8made);
	assert_true(v8_names_init(names));
	assert_int_equal(v8_name_place(names, &v8made.heap, &made->place, out), V8_NAMED);
	assert_int_equal(out->len, n);
}

static void test_names(void **state)
{
	struct made made = make();
	struct v8_names names;
	struct v8_named named;

	expect_named(&made, &names, 3, &named);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(names.frames.data[named.data[i]].inlined, i < 2);
	assert_string_equal(names.frames.data[named.data[0]].symbol, "inner");
	assert_string_equal(names.frames.data[named.data[2]].symbol, "outer");
	v8_names_deinit(&names);
}

/* All or nothing of what was inlined. */
static void test_no_name(void **state)
{
	struct made made = make();
	struct v8_names names;
	struct v8_named named;

	v8make_put(&v8made, made.inner, 16, made.data);
	expect_named(&made, &names, 1, &named);
	assert_string_equal(names.frames.data[named.data[0]].symbol, "outer");
	assert_false(names.frames.data[named.data[0]].inlined);
	v8_names_deinit(&names);
}

/* A builtin is said to be one, but the function is the program's: it is left out. */
static void test_no_builtin(void **state)
{
	struct made made = make();
	struct v8_names names;
	struct v8_named named;

	v8make_put(&v8made, made.literals, 32, made.place.function | 2);
	expect_named(&made, &names, 2, &named);
	assert_string_equal(names.frames.data[named.data[0]].symbol, "inner");
	assert_string_equal(names.frames.data[named.data[1]].symbol, "outer");
	v8_names_deinit(&names);
}

/* What is not right has its own function only, and the line where that begins. */
static void expect_alone(const struct made *made)
{
	struct v8_calls calls;

	v8make_finish(&v8made);
	assert_true(v8_place_calls(&v8made.heap, &made->place, &calls));
	assert_int_equal(calls.len, 1);
	assert_int_equal(calls.data[0].shared, made->outer);
	assert_int_equal(calls.data[0].bytecode, 0);
}

/* What V8 has dropped was there when the frame was made: it is known that something is missing. */
static void test_dropped(void **state)
{
	struct made made = make();
	uint64_t none = v8make_array(&v8made, V8MAKE_TYPE_ARRAY, NULL, 0);
	struct v8_calls calls;

	v8make_finish(&v8made);
	assert_true(v8_place_calls(&v8made.heap, &made.place, &calls));
	assert_false(calls.is_left);
	v8make_put(&v8made, made.code.object, 16, none);
	expect_alone(&made);
	assert_true(v8_place_calls(&v8made.heap, &made.place, &calls));
	assert_true(calls.is_left);
	made.place.is_exact = true;
	assert_true(v8_place_calls(&v8made.heap, &made.place, &calls));
	assert_false(calls.is_left);
}

static void test_nothing_called(void **state)
{
	struct made made = make();

	made.place.is_exact = true;
	expect_alone(&made);
}

static void test_elsewhere(void **state)
{
	struct made made = make();

	made.place.pc++;
	expect_alone(&made);
}

/* Each word by itself is enough to have nothing told. */
static void test_damaged(void **state)
{
	static const struct {
		size_t slot; /* of the data */
		uint64_t value;
	} bad[] = {
		{0, 0}, {2, 0}, {6, 0}, {10, 0}, {10, UINT64_C(2) << 32}, {12, UINT64_C(1) << 32}, {12, UINT64_C(99) << 32},
		{12, UINT64_MAX}, {13, 0},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct made made = make();

		v8make_put(&v8made, made.data, 16 + 8 * bad[i].slot, bad[i].value);
		expect_alone(&made);
		v8make_tear_down(NULL);
		v8make_set_up(NULL);
	}
}

static void test_other_types(void **state)
{
	struct made made = make();

	v8make_put(&v8made, made.code.object, 16, made.literals);
	expect_alone(&made);
}

/* Of another function than the frame's. */
static void test_other_function(void **state)
{
	struct made made = make();

	v8make_put(&v8made, made.literals, 16, made.inner);
	expect_alone(&made);
}

static void test_few_literals(void **state)
{
	struct made made = make();

	v8make_put(&v8made, made.literals, 8, v8make_small(1));
	expect_alone(&made);
}

static void test_no_function(void **state)
{
	struct made made = make();

	v8make_put(&v8made, made.literals, 24, made.data);
	expect_alone(&made);
}

static void test_short_bytecode(void **state)
{
	struct made made = make();

	v8make_put(&v8made, made.inner_bytecode, 8, v8make_small(3));
	expect_alone(&made);
}

static void test_no_bytecode(void **state)
{
	struct made made = make();

	v8make_put(&v8made, made.inner, 8, made.data);
	expect_alone(&made);
}

/* A version of which nothing is known. */
static void test_other_version(void **state)
{
	struct made made = make();

	v8made.layout.facts[V8_MINOR] = 9;
	expect_alone(&made);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, v8make_set_up, v8make_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_inlined),        TEST(test_names),          TEST(test_no_name),      TEST(test_no_builtin),
		TEST(test_nothing_called), TEST(test_elsewhere),      TEST(test_damaged),      TEST(test_dropped),
		TEST(test_other_types),    TEST(test_other_function), TEST(test_few_literals), TEST(test_no_function),
		TEST(test_short_bytecode), TEST(test_no_bytecode),    TEST(test_other_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
