/* SPDX-License-Identifier: MIT */
#include "pymem.h"

#include "runtime/python/chain.h"

enum { TSTATE = PYMEM_BASE + 0x1000, FRAMES = PYMEM_BASE + 0x4000, STACK = PYMEM_BASE + 0x80000, CODE = 0x777000 };

static struct pymem memory = {.mem = {.read = pymem_read}};
static struct python_chain chain;

static int reset(void **state)
{
	memset(memory.bytes, 0, sizeof(memory.bytes));
	memory.reads = 0;
	return 0;
}

static void put_frame(const struct python_layout *l, uint64_t at, uint64_t code, uint64_t previous, uint8_t owner)
{
	pymem_put64(&memory, at + l->at[PY_FRAME_CODE], code);
	pymem_put64(&memory, at + l->at[PY_FRAME_PREVIOUS], previous);
	pymem_put64(&memory, at + l->at[PY_FRAME_INSTR], code + 300);
	pymem_put8(&memory, at + l->at[PY_FRAME_OWNER], owner);
}

static void expect_frame(size_t i, uint64_t address, uint64_t code, uint64_t anchor)
{
	assert_int_equal(chain.frames[i].address, address);
	assert_int_equal(chain.frames[i].code, code);
	assert_int_equal(chain.frames[i].anchor, anchor);
}

/* Two activations, the inner one of two frames; the codes have tags as since 3.14. */
static void test_shims(void **state)
{
	struct python_layout l = pymem_layout();

	put_frame(&l, FRAMES + 0x200, CODE + 2, FRAMES + 0x100, 0);
	put_frame(&l, FRAMES + 0x100, CODE + 0x1000, STACK, 1);
	put_frame(&l, STACK, 0x1234, FRAMES, 3);
	put_frame(&l, FRAMES, CODE + 0x2001, STACK + 0x400, 0);
	put_frame(&l, STACK + 0x400, 0x1234, 0, 4);
	pymem_put64(&memory, TSTATE + l.at[PY_TSTATE_FRAME], FRAMES + 0x200);
	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_null(chain.problem);
	assert_false(chain.cut);
	assert_int_equal(chain.len, 3);
	expect_frame(0, FRAMES + 0x200, CODE, STACK);
	expect_frame(1, FRAMES + 0x100, CODE + 0x1000, STACK);
	expect_frame(2, FRAMES, CODE + 0x2000, STACK + 0x400);
	assert_int_equal(chain.frames[0].instr, CODE + 2 + 300);
}

/* A thread that runs no Python just now. */
static void test_none(void **state)
{
	struct python_layout l = pymem_layout();

	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_null(chain.problem);
	assert_int_equal(chain.len, 0);
	python_chain_read(&l, &memory.mem, 8, &chain);
	assert_non_null(chain.problem);
}

/* Whatever has no shim behind it is no activation; and pointers may lead anywhere. */
static void test_broken_shims(void **state)
{
	struct python_layout l = pymem_layout();

	pymem_put64(&memory, TSTATE + l.at[PY_TSTATE_FRAME], FRAMES);
	put_frame(&l, FRAMES, CODE, 0, 0);
	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_non_null(chain.problem);
	put_frame(&l, FRAMES, CODE, 0x10, 0);
	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_non_null(chain.problem);
	put_frame(&l, FRAMES, CODE, PYMEM_BASE + PYMEM_SIZE - 8, 0);
	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_non_null(chain.problem);
}

/* Rings end, with a bounded number of reads: of frames, which are then too many, and of shims. */
static void test_rings(void **state)
{
	struct python_layout l = pymem_layout();

	pymem_put64(&memory, TSTATE + l.at[PY_TSTATE_FRAME], FRAMES);
	put_frame(&l, FRAMES, CODE, FRAMES, 0);
	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_non_null(chain.problem);
	put_frame(&l, FRAMES, CODE, FRAMES, 3);
	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_non_null(chain.problem);
	assert_true(memory.reads < 33 * PYTHON_MAX_FRAMES);
}

/* Of a deep recursion the innermost are shown, in their place: its end is found all the same. */
static void test_many(void **state)
{
	struct python_layout l = pymem_layout();
	uint64_t n = PYTHON_MAX_FRAMES * 3;

	pymem_put64(&memory, TSTATE + l.at[PY_TSTATE_FRAME], FRAMES);
	for (uint64_t i = 0; i < n; i++)
		put_frame(&l, FRAMES + i * 0x60, CODE, i + 1 < n ? FRAMES + (i + 1) * 0x60 : STACK, 0);
	put_frame(&l, STACK, 0, FRAMES, 3);
	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_null(chain.problem);
	assert_true(chain.cut);
	assert_int_equal(chain.len, PYTHON_MAX_FRAMES);
	expect_frame(0, FRAMES, CODE, STACK);
	expect_frame(PYTHON_MAX_FRAMES - 1, FRAMES + (PYTHON_MAX_FRAMES - 1) * 0x60, CODE, STACK);
}

static struct python_layout layout_3_11(void)
{
	struct python_layout l = pymem_layout();

	l.at[PY_VERSION] = 0x030b02f0;
	l.at[PY_FRAMES] = PY_FRAMES_CFRAME;
	l.at[PY_TSTATE_FRAME] = 56;
	l.at[PY_CFRAME_FRAME] = 8;
	l.at[PY_CFRAME_PREVIOUS] = 16;
	l.at[PY_FRAME_CODE] = 32;
	l.at[PY_FRAME_PREVIOUS] = 48;
	l.at[PY_FRAME_INSTR] = 56;
	l.at[PY_FRAME_OWNER] = 68;
	return l;
}

static void put_cframe(uint64_t at, uint64_t frame, uint64_t previous)
{
	pymem_put64(&memory, at + 8, frame);
	pymem_put64(&memory, at + 16, previous);
}

static void test_cframes(void **state)
{
	struct python_layout l = layout_3_11();

	pymem_put64(&memory, TSTATE + 56, STACK);
	put_cframe(STACK, FRAMES + 0x200, STACK + 0x400);
	put_cframe(STACK + 0x400, FRAMES, TSTATE + 336);
	put_cframe(TSTATE + 336, 0, 0);
	put_frame(&l, FRAMES + 0x200, CODE, FRAMES + 0x100, 0);
	put_frame(&l, FRAMES + 0x100, CODE + 0x1000, FRAMES, 1);
	put_frame(&l, FRAMES, CODE + 0x2000, 0, 1);
	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_null(chain.problem);
	assert_int_equal(chain.len, 3);
	expect_frame(0, FRAMES + 0x200, CODE, STACK);
	expect_frame(1, FRAMES + 0x100, CODE + 0x1000, STACK);
	expect_frame(2, FRAMES, CODE + 0x2000, STACK + 0x400);

	/* What the outer activation says is not what the inner one's frames come to. */
	put_cframe(STACK + 0x400, FRAMES + 0x80, TSTATE + 336);
	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_non_null(chain.problem);
	/* The activations end before the frames do. */
	put_cframe(STACK + 0x400, FRAMES, TSTATE + 336);
	put_frame(&l, FRAMES, CODE + 0x2000, FRAMES + 0x300, 1);
	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_non_null(chain.problem);
	/* A ring of activations. */
	put_cframe(STACK, 0, STACK);
	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_int_equal(chain.len, 0);
}

/* Up to 3.10: an int tells the instruction, and what follows it is another field. */
static void test_objects(void **state)
{
	struct python_layout l = pymem_layout();

	l.at[PY_VERSION] = 0x03090000;
	l.at[PY_FRAMES] = PY_FRAMES_OBJECTS;
	l.at[PY_TSTATE_FRAME] = 24;
	l.at[PY_FRAME_CODE] = 32;
	l.at[PY_FRAME_PREVIOUS] = 24;
	l.at[PY_FRAME_INSTR] = 104;
	l.at[PY_FRAME_OWNER] = 0;
	pymem_put64(&memory, TSTATE + 24, FRAMES);
	put_frame(&l, FRAMES, CODE, FRAMES + 0x200, 9);
	pymem_put64(&memory, FRAMES + 104, UINT64_C(0x500000004));
	put_frame(&l, FRAMES + 0x200, CODE + 0x1000, 0, 9);
	python_chain_read(&l, &memory.mem, TSTATE, &chain);
	assert_null(chain.problem);
	assert_int_equal(chain.len, 2);
	assert_int_equal(chain.frames[0].instr, 4);
	expect_frame(1, FRAMES + 0x200, CODE + 0x1000, 0);
}

static void test_whose(void **state)
{
	struct python_layout l = pymem_layout();

	pymem_put64(&memory, TSTATE + 152, 0xabc000);
	pymem_put64(&memory, TSTATE + 160, 4711);
	assert_true(python_tstate_is(&l, &memory.mem, TSTATE, 0, 4711));
	assert_false(python_tstate_is(&l, &memory.mem, TSTATE, 0xabc000, 4712));
	assert_false(python_tstate_is(&l, &memory.mem, 8, 0, 4711));
	l.at[PY_TSTATE_NATIVE] = 0;
	assert_true(python_tstate_is(&l, &memory.mem, TSTATE, 0xabc000, 4712));
	assert_false(python_tstate_is(&l, &memory.mem, TSTATE, 0xabc001, 4711));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_shims, reset),   cmocka_unit_test_setup(test_none, reset),
		cmocka_unit_test_setup(test_broken_shims, reset), cmocka_unit_test_setup(test_rings, reset),
		cmocka_unit_test_setup(test_cframes, reset), cmocka_unit_test_setup(test_objects, reset),
		cmocka_unit_test_setup(test_whose, reset),   cmocka_unit_test_setup(test_many, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
