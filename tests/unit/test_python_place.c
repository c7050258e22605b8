/* SPDX-License-Identifier: MIT */
#include "pymem.h"

#include "runtime/python/place.h"

/* The interpreter's code is at 0x400000, a library's at 0x500000. Frames take 0x100 bytes of stack each. */
static struct map_entry entries[] = {
	{.start = 0x400000, .end = 0x420000, .inode = 7, .path = "/usr/bin/python3"},
	{.start = 0x500000, .end = 0x520000, .inode = 8, .path = "/lib/libc.so"},
};
static const struct maps maps = {.data = entries, .len = 2};
enum { EVAL = 0x400100, COLD = 0x418000, CALL = 0x410100, LIBRARY = 0x500100, SP = 0x7000 };

static struct raw_frame frames[8];
static struct raw_stack raw = {.data = frames};
static struct python_chain chain;
static uint32_t places[PYTHON_MAX_FRAMES];
static struct u64map known;

static void make(enum stack_end end, size_t n, const uint64_t *pcs)
{
	raw.len = n;
	raw.end = end;
	for (size_t i = 0; i < n; i++)
		frames[i] = (struct raw_frame){.pc = pcs[i], .sp = SP + i * 0x100};
	memset(&chain, 0, sizeof(chain));
}

#define MAKE(end, ...) make(end, sizeof((uint64_t[]){__VA_ARGS__}) / 8, (const uint64_t[]){__VA_ARGS__})

static void add(uint64_t anchor)
{
	chain.frames[chain.len++].anchor = anchor;
}

static const char *place(enum python_frames kind)
{
	struct python_layout layout = pymem_layout();

	layout.at[PY_FRAMES] = kind;
	return python_place(&layout, &maps, &raw, &known, &chain, places);
}

static void test_by_anchor(void **state)
{
	MAKE(STACK_COMPLETE, LIBRARY, EVAL, CALL, COLD, LIBRARY);
	add(SP + 0x180);
	add(SP + 0x180);
	add(SP + 0x300);
	assert_null(place(PY_FRAMES_SHIM));
	assert_int_equal(places[0], 1);
	assert_int_equal(places[1], 1);
	assert_int_equal(places[2], 3);
}

static void test_anchors_that_do_not_fit(void **state)
{
	MAKE(STACK_COMPLETE, LIBRARY, EVAL, CALL, EVAL, LIBRARY);
	add(SP + 0x80); /* in the library's frame */
	assert_non_null(place(PY_FRAMES_SHIM));
	chain.len = 0;
	add(SP + 0x300);
	add(SP + 0x180); /* an outer one that is further in */
	assert_non_null(place(PY_FRAMES_CFRAME));
	chain.len = 0;
	add(SP + 0x180);
	add(SP + 0x190); /* two activations in one frame */
	assert_non_null(place(PY_FRAMES_SHIM));
	chain.len = 0;
	add(SP + 0x9000); /* nowhere */
	assert_non_null(place(PY_FRAMES_SHIM));
	raw.end = STACK_NO_UNWIND_INFO; /* but where the walk did not get to the end it may be behind that */
	assert_null(place(PY_FRAMES_SHIM));
	assert_int_equal(places[0], raw.len);
}

static void know(uint64_t anchor, uint64_t pc)
{
	bool created;

	*u64map_put(&known, anchor, &created) = pc;
}

/* Without the files a walk may not know how far frames reach: here each seems to begin where the one before it does. */
/* Of an activation that is just begun it may not be known yet which one it follows. */
static void test_unlinked(void **state)
{
	MAKE(STACK_COMPLETE, EVAL, CALL, EVAL, LIBRARY);
	add(SP + 0x80);
	assert_non_null(place(PY_FRAMES_SHIM));
	add(SP + 0x280);
	assert_null(place(PY_FRAMES_SHIM));
	MAKE(STACK_COMPLETE, EVAL, CALL, LIBRARY); /* there is no other */
	add(SP + 0x80);
	assert_null(place(PY_FRAMES_SHIM));
	MAKE(STACK_COMPLETE, CALL, EVAL, CALL, EVAL, LIBRARY); /* it has gone on: a program that changes stacks */
	add(SP + 0x180);
	assert_null(place(PY_FRAMES_SHIM));
}

static void test_known_frames(void **state)
{
	MAKE(STACK_NO_UNWIND_INFO, LIBRARY, EVAL, CALL, EVAL, LIBRARY);
	add(SP + 0x280);
	add(SP + 0x480);
	assert_null(place(PY_FRAMES_SHIM));
	assert_int_equal(places[0], 2);
	know(SP + 0x280, EVAL);
	know(SP + 0x480, EVAL);
	assert_null(place(PY_FRAMES_SHIM));
	assert_int_equal(places[0], 1);
	assert_int_equal(places[1], 3);
	know(SP + 0x480, COLD); /* the walk did not get to it */
	assert_null(place(PY_FRAMES_SHIM));
	assert_int_equal(places[1], raw.len);
	raw.end = STACK_COMPLETE;
	assert_non_null(place(PY_FRAMES_SHIM));
	u64map_deinit(&known);
}

static void test_no_anchor(void **state)
{
	MAKE(STACK_COMPLETE, EVAL, CALL);
	add(0);
	assert_non_null(place(PY_FRAMES_SHIM));
}

static void test_by_count(void **state)
{
	MAKE(STACK_COMPLETE, LIBRARY, EVAL, CALL, EVAL, LIBRARY);
	add(0);
	add(0);
	assert_null(place(PY_FRAMES_OBJECTS));
	assert_int_equal(places[0], 1);
	assert_int_equal(places[1], 3);
	add(0);
	assert_non_null(place(PY_FRAMES_OBJECTS));
	raw.end = STACK_COPY_LIMIT;
	assert_null(place(PY_FRAMES_OBJECTS));
	assert_int_equal(places[2], raw.len);
	chain.len = 1;
	assert_non_null(place(PY_FRAMES_OBJECTS));
	chain.cut = true;
	assert_null(place(PY_FRAMES_OBJECTS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_anchor),
		cmocka_unit_test(test_anchors_that_do_not_fit),
		cmocka_unit_test(test_unlinked),
		cmocka_unit_test(test_known_frames),
		cmocka_unit_test(test_no_anchor),
		cmocka_unit_test(test_by_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
