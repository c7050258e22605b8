/* SPDX-License-Identifier: MIT */
#include "v8make.h"

#include "runtime/v8/translation.h"

/* Instructions of V8 11.3, and operands: those that have a sign in their lowest bit. */
enum { BEGIN = 2, INTERPRETED = 23, INTERPRETED_ALONE = 24, BUILTIN = 25, LITERAL = 29, SLOT = 31, REPEAT = 35, COUNT = 36 };
#define SIGNED(n) ((n) * 2)

static bool read(const void *bytes, size_t len, uint32_t at, struct v8_translation *out)
{
	uint64_t array;

	v8make_deinit(&v8made);
	v8make_init(&v8made);
	array = v8make_bytes(&v8made, bytes, len);
	v8make_finish(&v8made);
	return v8_translation_read(&v8made.heap, v8_tables_find(&v8made.layout), array, at, out);
}

static const uint8_t first[] = {
	0xff, 0xff, 0xff,                                                          /* of something else */
	BEGIN, 0, SIGNED(3), SIGNED(3),
	INTERPRETED_ALONE, SIGNED(9), SIGNED(4), 20, SLOT, 2, SLOT, 3,             /* bytecode 9 of literal 4 */
	BUILTIN, SIGNED(60), SIGNED(4), 5, LITERAL, SIGNED(7), SLOT, 3,            /* a builtin, whose function is literal 7 */
	INTERPRETED, 0x80 | SIGNED(36), 2, SIGNED(2), 20, 0, 0, SLOT, 2, SLOT, 3,  /* bytecode 164 of literal 2 */
	BEGIN, 31, SIGNED(3), SIGNED(3),
	COUNT + 3,                                                                 /* the first frame and its values */
	BUILTIN, SIGNED(60), SIGNED(5), 5, SLOT, 9, REPEAT, 1,                     /* one more value */
	INTERPRETED_ALONE, SIGNED(0) + 3, SIGNED(1), 20,                           /* bytecode -1 */
};

static void test_frames(void **state)
{
	struct v8_translation t;

	assert_true(read(first, sizeof(first), 3, &t));
	assert_int_equal(t.len, 3);
	assert_int_equal(t.data[0].offset, 9);
	assert_int_equal(t.data[0].shared, 4);
	assert_false(t.data[0].is_builtin);
	assert_true(t.data[1].is_builtin);
	assert_int_equal(t.data[1].shared, 4);
	assert_int_equal(t.data[1].function, 7);
	assert_int_equal(t.data[2].offset, 164);
	assert_int_equal(t.data[2].shared, 2);
}

/* What is the same as in another translation is not written again. */
static void test_repeated(void **state)
{
	struct v8_translation t;

	assert_int_equal(first[34], BEGIN);
	assert_true(read(first, sizeof(first), 34, &t));
	assert_int_equal(t.len, 3);
	assert_int_equal(t.data[0].offset, 9);
	assert_int_equal(t.data[0].shared, 4);
	assert_true(t.data[1].is_builtin);
	assert_int_equal(t.data[1].shared, 5);
	assert_int_equal(t.data[1].function, -1); /* a value in the frame */
	assert_int_equal(t.data[2].offset, -1);
	assert_int_equal(t.data[2].shared, 1);
}

/* Before 11, instructions were numbers as all others, and each translation was whole. */
static void test_older(void **state)
{
	static const uint8_t bytes[] = {
		SIGNED(3), SIGNED(2), SIGNED(1), SIGNED(0),
		SIGNED(0), SIGNED(3), SIGNED(1),                                /* a frame of no function */
		SIGNED(18), SIGNED(12), SIGNED(6), SIGNED(1), SIGNED(0), SIGNED(0),
	};
	struct v8_translation t;
	uint64_t array = v8make_bytes(&v8made, bytes, sizeof(bytes));

	v8made.layout.facts[V8_MAJOR] = 10;
	v8made.layout.facts[V8_MINOR] = 2;
	v8make_finish(&v8made);
	assert_true(v8_translation_read(&v8made.heap, v8_tables_find(&v8made.layout), array, 0, &t));
	assert_int_equal(t.len, 1);
	assert_int_equal(t.data[0].offset, 12);
	assert_int_equal(t.data[0].shared, 6);
}

static void test_damaged(void **state)
{
	static const uint8_t nothing_to_repeat[] = {BEGIN, 0, SIGNED(1), SIGNED(1), COUNT + 1};
	static const uint8_t too_far_back[] = {BEGIN, 9, SIGNED(1), SIGNED(1), COUNT + 1};
	static const uint8_t itself[] = {BEGIN, 0, SIGNED(1), SIGNED(1), BEGIN, 4, SIGNED(1), SIGNED(1), COUNT + 1, COUNT + 1};
	static const uint8_t too_many[] = {BEGIN, 0, SIGNED(60) + 9, SIGNED(60) + 10};
	static const uint8_t more_than_all[] = {BEGIN, 0, SIGNED(1), SIGNED(2), INTERPRETED_ALONE, 0, 0, 0};
	static const uint8_t none[] = {BEGIN, 0, SIGNED(1), SIGNED(0)};
	static const uint8_t endless[] = {BEGIN, 0, SIGNED(1), SIGNED(1), SLOT, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct v8_translation t;

	for (size_t len = 0; len < 30; len++)
		assert_false(read(first, len, 3, &t));
	assert_false(read(first, sizeof(first), 4, &t));
	assert_false(read(first, sizeof(first), UINT32_MAX, &t));
	assert_false(read(nothing_to_repeat, sizeof(nothing_to_repeat), 0, &t));
	assert_false(read(too_far_back, sizeof(too_far_back), 0, &t));
	assert_false(read(itself, sizeof(itself), 4, &t));
	assert_false(read(too_many, sizeof(too_many), 0, &t));
	assert_false(read(more_than_all, sizeof(more_than_all), 0, &t));
	assert_false(read(none, sizeof(none), 0, &t));
	assert_false(read(endless, sizeof(endless), 0, &t));
}

/* What follows the last frame is looked at, as that may be a builtin; it is no frame more. */
static void test_most_frames(void **state)
{
	static const uint8_t frame[] = {BUILTIN, 0, SIGNED(1), 0};
	uint8_t bytes[6 + 65 * sizeof(frame)] = {BEGIN, 0, 0x80, 1, 0x80, 1};
	struct v8_translation t;

	for (size_t i = 0; i < 65; i++)
		memcpy(bytes + 6 + i * sizeof(frame), frame, sizeof(frame));
	assert_true(read(bytes, sizeof(bytes), 0, &t));
	assert_int_equal(t.len, TRANSLATION_FRAMES);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, v8make_set_up, v8make_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_frames), TEST(test_repeated), TEST(test_older), TEST(test_damaged),
					   TEST(test_most_frames)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
