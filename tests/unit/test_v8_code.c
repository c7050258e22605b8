/* SPDX-License-Identifier: MIT */
#include "v8make.h"

#include "runtime/v8/code.h"

static struct v8make m;

static int set_up(void **state)
{
	v8make_init(&m);
	return 0;
}

static int tear_down(void **state)
{
	v8make_deinit(&m);
	return 0;
}

static void test_find(void **state)
{
	struct v8make_code first = v8make_code(&m, V8MAKE_BASELINE, 100, NULL, 0);
	struct v8make_code second = v8make_code(&m, V8MAKE_TURBOFAN, 20000, NULL, 0);
	struct v8_code code;

	v8make_put(&m, second.object, 16, 0x1001);
	v8make_put(&m, second.object, 24, 0x2001);
	v8make_finish(&m);
	assert_true(v8_code_find(&m.heap, first.start + 99, &code));
	assert_int_equal(code.object, first.object);
	assert_int_equal(code.tier, V8_BASELINE);
	assert_true(v8_code_find(&m.heap, first.start + 100, &code)); /* a call may be the last instruction */
	assert_false(v8_code_find(&m.heap, first.start + 101, &code));
	assert_true(v8_code_find(&m.heap, second.start, &code));
	assert_true(v8_code_find(&m.heap, second.start + 19999, &code));
	assert_int_equal(code.object, second.object);
	assert_int_equal(code.stream, second.stream);
	assert_int_equal(code.start, second.start);
	assert_int_equal(code.size, 20000);
	assert_int_equal(code.tier, V8_TURBOFAN);
	assert_int_equal(code.data, 0x1001);
	assert_int_equal(code.positions, 0x2001);
	m.layout.facts[V8_MINOR] = 4; /* nothing is known of that */
	assert_false(v8_code_find(&m.heap, second.start, &code));
}

/* Instructions hold what could be an object with instructions, but it has no Code, or one of others. */
static void test_others(void **state)
{
	struct v8make_code first = v8make_code(&m, V8MAKE_MAGLEV, 200, NULL, 0);
	struct v8make_code second = v8make_code(&m, V8MAKE_MAGLEV, 200, NULL, 0);
	struct v8make_code builtin = v8make_code(&m, 2, 200, NULL, 0);
	struct v8make_code huge = v8make_code(&m, V8MAKE_MAGLEV, 200, NULL, 0);
	struct v8_code code;
	uint64_t map;

	memcpy(&map, m.bytes + (first.stream - 1 - V8MAKE_BASE), sizeof(map));
	v8make_put(&m, second.stream, 96, map);
	v8make_put(&m, second.stream, 104, first.object);
	v8make_put(&m, huge.object, 56, 64 << 20);
	v8make_finish(&m);
	assert_true(v8_code_find(&m.heap, first.start + 100, &code));
	assert_true(v8_code_find(&m.heap, second.start + 60, &code));
	assert_false(v8_code_find(&m.heap, second.start + 150, &code));
	assert_false(v8_code_find(&m.heap, builtin.start + 100, &code));
	assert_false(v8_code_find(&m.heap, huge.start + 100, &code));
	assert_false(v8_code_find(&m.heap, V8MAKE_BASE + 8, &code));
	assert_false(v8_code_find(&m.heap, 0, &code));
	assert_false(v8_code_find(&m.heap, UINT64_MAX, &code));
}

/* Before, instructions followed their Code. */
static void test_one_object(void **state)
{
	struct v8_code code;
	uint64_t object;

	m.layout.facts[V8_MAJOR] = 10;
	m.layout.facts[V8_MINOR] = 2;
	m.layout.facts[V8_TYPE_STREAM] = V8_ABSENT;
	m.layout.facts[V8_STREAM_START] = 96;
	m.layout.facts[V8_CODE_SIZE] = 40;
	m.layout.facts[V8_CODE_FLAGS] = 48;
	while (m.len % 32 != 16) /* its map is before it */
		v8make_room(&m, 8);
	object = v8make_object(&m, V8MAKE_TYPE_CODE, 300);
	v8make_put(&m, object, 40, 200);
	v8make_put(&m, object, 48, V8MAKE_TURBOFAN);
	v8make_finish(&m);
	assert_true(v8_code_find(&m.heap, object - 1 + 96 + 150, &code));
	assert_int_equal(code.object, object);
	assert_int_equal(code.stream, object);
	assert_int_equal(code.start, object - 1 + 96);
	assert_int_equal(code.tier, V8_TURBOFAN);
	assert_false(v8_code_find(&m.heap, object - 1 + 96 + 201, &code));
}

static void test_bytecode(void **state)
{
	uint64_t bytecode = v8make_bytecode(&m, "abc", 3, 0), data = v8make_object(&m, V8MAKE_TYPE_INTERPRETER_DATA, 24);
	uint64_t shared = v8make_object(&m, V8MAKE_TYPE_SHARED, 64), through = v8make_object(&m, V8MAKE_TYPE_SHARED, 64);
	uint64_t compiled = v8make_object(&m, V8MAKE_TYPE_SHARED, 64), none = v8make_object(&m, V8MAKE_TYPE_SHARED, 64);
	struct v8make_code made = v8make_code(&m, V8MAKE_BASELINE, 100, NULL, 0);
	uint64_t found;

	v8make_put(&m, data, 8, bytecode);
	v8make_put(&m, shared, 8, bytecode);
	v8make_put(&m, through, 8, data);
	v8make_put(&m, made.object, 16, data);
	v8make_put(&m, compiled, 8, made.object);
	v8make_put(&m, none, 8, shared);
	v8make_finish(&m);
	assert_true(v8_code_of_shared(&m.heap, shared, &found) && found == bytecode);
	assert_true(v8_code_of_shared(&m.heap, through, &found) && found == bytecode);
	assert_true(v8_code_of_shared(&m.heap, compiled, &found) && found == bytecode);
	assert_false(v8_code_of_shared(&m.heap, none, &found));
	assert_false(v8_code_of_shared(&m.heap, 0, &found));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_find), TEST(test_others), TEST(test_one_object), TEST(test_bytecode)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
