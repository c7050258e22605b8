/* SPDX-License-Identifier: MIT */
#include "v8make.h"

#include "runtime/v8/code.h"

static void test_find(void **state)
{
	struct v8make_code first = v8make_code(&v8made, V8MAKE_BASELINE, 100, NULL, 0);
	struct v8make_code second = v8make_code(&v8made, V8MAKE_TURBOFAN, 20000, NULL, 0);
	struct v8_code code;

	v8make_put(&v8made, second.object, 16, 0x1001);
	v8make_put(&v8made, second.object, 24, 0x2001);
	v8make_finish(&v8made);
	assert_true(v8_code_find(&v8made.heap, first.start + 99, &code));
	assert_int_equal(code.object, first.object);
	assert_int_equal(code.tier, V8_BASELINE);
	assert_true(v8_code_find(&v8made.heap, first.start + 100, &code)); /* a call may be the last instruction */
	assert_false(v8_code_find(&v8made.heap, first.start + 101, &code));
	assert_true(v8_code_find(&v8made.heap, second.start, &code));
	assert_true(v8_code_find(&v8made.heap, second.start + 19999, &code));
	assert_int_equal(code.object, second.object);
	assert_int_equal(code.stream, second.stream);
	assert_int_equal(code.start, second.start);
	assert_int_equal(code.size, 20000);
	assert_int_equal(code.tier, V8_TURBOFAN);
	assert_int_equal(code.data, 0x1001);
	assert_int_equal(code.positions, 0x2001);
	v8made.layout.facts[V8_MINOR] = 4; /* nothing is known of that */
	assert_false(v8_code_find(&v8made.heap, second.start, &code));
}

/* Instructions hold what could be an object with instructions, but it has no Code, or one of others. */
static void test_others(void **state)
{
	struct v8make_code first = v8make_code(&v8made, V8MAKE_MAGLEV, 200, NULL, 0);
	struct v8make_code second = v8make_code(&v8made, V8MAKE_MAGLEV, 200, NULL, 0);
	struct v8make_code builtin = v8make_code(&v8made, 2, 200, NULL, 0);
	struct v8make_code huge = v8make_code(&v8made, V8MAKE_MAGLEV, 200, NULL, 0);
	struct v8_code code;
	uint64_t map;

	memcpy(&map, v8made.bytes + (first.stream - 1 - V8MAKE_BASE), sizeof(map));
	v8make_put(&v8made, second.stream, 96, map);
	v8make_put(&v8made, second.stream, 104, first.object);
	v8make_put(&v8made, huge.object, 56, 64 << 20);
	v8make_finish(&v8made);
	assert_true(v8_code_find(&v8made.heap, first.start + 100, &code));
	assert_true(v8_code_find(&v8made.heap, second.start + 60, &code));
	assert_false(v8_code_find(&v8made.heap, second.start + 150, &code));
	assert_false(v8_code_find(&v8made.heap, builtin.start + 100, &code));
	assert_false(v8_code_find(&v8made.heap, huge.start + 100, &code));
	assert_false(v8_code_find(&v8made.heap, V8MAKE_BASE + 8, &code));
	assert_false(v8_code_find(&v8made.heap, 0, &code));
	assert_false(v8_code_find(&v8made.heap, UINT64_MAX, &code));
}

/*
 * Instructions hold what could be the address of a map, as those of x86_64 do, where there is no memory. As long as it may still come
 * nothing can be said; of a saved snapshot all that can be had is there.
 */
static void test_saved(void **state)
{
	struct v8make_code made = v8make_code(&v8made, V8MAKE_BASELINE, 200, NULL, 0);
	struct snapshot *snap = snapshot_create(1, &arch_x86_64);
	struct snap_copy copy = {.tid = 7, .copy = {.start = V8MAKE_BASE, .len = V8MAKE_SIZE, .data = v8made.bytes}};
	struct v8_code code;

	v8make_put(&v8made, made.stream, 96, 0x671895ff41c1);
	v8make_finish(&v8made);
	assert_false(v8_code_find(&v8made.heap, made.start + 150, &code));
	assert_true(v8made.pages.lacks);
	assert_true(vec_push(&snap->copies, copy));
	pages_deinit(&v8made.pages);
	pages_init(&v8made.pages, V8MAKE_SIZE);
	assert_true(pages_load(&v8made.pages, snap, 7));
	assert_true(v8_code_find(&v8made.heap, made.start + 150, &code));
	assert_int_equal(code.object, made.object);
	snapshot_destroy(snap);
}

/* Before, instructions followed their Code. */
static void test_one_object(void **state)
{
	struct v8_code code;
	uint64_t object;

	v8made.layout.facts[V8_MAJOR] = 10;
	v8made.layout.facts[V8_MINOR] = 2;
	v8made.layout.facts[V8_TYPE_STREAM] = V8_ABSENT;
	v8made.layout.facts[V8_STREAM_START] = 96;
	v8made.layout.facts[V8_CODE_SIZE] = 40;
	v8made.layout.facts[V8_CODE_FLAGS] = 48;
	while (v8made.len % 32 != 16) /* its map is before it */
		v8make_room(&v8made, 8);
	object = v8make_object(&v8made, V8MAKE_TYPE_CODE, 300);
	v8make_put(&v8made, object, 40, 200);
	v8make_put(&v8made, object, 48, V8MAKE_TURBOFAN);
	v8make_finish(&v8made);
	assert_true(v8_code_find(&v8made.heap, object - 1 + 96 + 150, &code));
	assert_int_equal(code.object, object);
	assert_int_equal(code.stream, object);
	assert_int_equal(code.start, object - 1 + 96);
	assert_int_equal(code.tier, V8_TURBOFAN);
	assert_false(v8_code_find(&v8made.heap, object - 1 + 96 + 201, &code));
}

static void test_bytecode(void **state)
{
	uint64_t bytecode = v8make_bytecode(&v8made, "abc", 3, 0), data = v8make_object(&v8made, V8MAKE_TYPE_INTERPRETER_DATA, 24);
	uint64_t shared = v8make_object(&v8made, V8MAKE_TYPE_SHARED, 64), through = v8make_object(&v8made, V8MAKE_TYPE_SHARED, 64);
	uint64_t compiled = v8make_object(&v8made, V8MAKE_TYPE_SHARED, 64), none = v8make_object(&v8made, V8MAKE_TYPE_SHARED, 64);
	struct v8make_code made = v8make_code(&v8made, V8MAKE_BASELINE, 100, NULL, 0);
	uint64_t found;

	v8make_put(&v8made, data, 8, bytecode);
	v8make_put(&v8made, shared, 8, bytecode);
	v8make_put(&v8made, through, 8, data);
	v8make_put(&v8made, made.object, 16, data);
	v8make_put(&v8made, compiled, 8, made.object);
	v8make_put(&v8made, none, 8, shared);
	v8make_finish(&v8made);
	assert_true(v8_code_of_shared(&v8made.heap, shared, &found) && found == bytecode);
	assert_true(v8_code_of_shared(&v8made.heap, through, &found) && found == bytecode);
	assert_true(v8_code_of_shared(&v8made.heap, compiled, &found) && found == bytecode);
	assert_false(v8_code_of_shared(&v8made.heap, none, &found));
	assert_false(v8_code_of_shared(&v8made.heap, 0, &found));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, v8make_set_up, v8make_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_find), TEST(test_others), TEST(test_saved), TEST(test_one_object), TEST(test_bytecode)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
