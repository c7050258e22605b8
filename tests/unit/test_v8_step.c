/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "runtime/v8/step.h"

/* The state at each instruction of some code; what comes before is not known to begin a function. */
static void expect_states(const uint32_t *code, size_t n, const char *states)
{
	uint8_t bytes[64 * 4] = {0};

	memcpy(bytes + V8_CODE_BEFORE, code, n * 4);
	for (size_t i = 0; states[i]; i++) {
		size_t left = (n - i) * 4;
		enum v8_frame_state state = v8_frame_state(&arch_aarch64, bytes + 4 * i, V8_CODE_BEFORE + (left < 32 ? left : 32));

		assert_int_equal(state, states[i] == 'n' ? V8_FRAME_NONE : states[i] == 'p' ? V8_FRAME_PUSHED : V8_FRAME_WHOLE);
	}
}

/* As V8 11.3 compiled it: a check, the frame, the function and its context. */
static void test_prologue(void **state)
{
	static const uint32_t code[] = {
		0xf85f8050, /* ldur x16, [x2, #-8] */
		0xb8435210, /* ldur w16, [x16, #53] */
		0x36000070, /* tbz w16, #0 */
		0x58000c71, /* ldr x17 */
		0xd61f0220, /* br x17 */
		0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
		0x910003fd, /* mov x29, sp */
		0xa9be03ff, /* stp xzr, x0, [sp, #-32]! */
		0xa9016fe1, /* stp x1, x27, [sp, #16] */
		0xf8520342, /* ldur x2, [x26, #-224] */
		0x94000010, /* bl */
	};

	expect_states(code, 11, "nnnnnnpwwww");
}

static void test_epilogue(void **state)
{
	static const uint32_t code[] = {
		0x94000010, /* bl */
		0x910003bf, /* mov sp, x29 */
		0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
		0xf1000c7f, /* cmp x3, #3 */
		0x9a83c063, /* csel */
		0x8b2363ff, /* add sp, sp, x3 */
		0xd65f03c0, /* ret */
	};

	expect_states(code, 7, "wwwnnnn");
}

/* A jump elsewhere says nothing of what follows it in memory, nor does what is no code. */
static void test_body(void **state)
{
	static const uint32_t jump[] = {0x14000004, 0xd65f03c0}, none[] = {0x00000000, 0xa9bf7bfd};
	static const uint32_t computed[] = {0xd61f0220, 0xd65f03c0}, call[] = {0xd63f0200, 0xa9bf7bfd};

	expect_states(jump, 2, "w");
	expect_states(none, 2, "w");
	expect_states(computed, 2, "w");
	expect_states(call, 2, "w");
}

/* With four bytes before where execution stands. */
static enum v8_frame_state state_of(const char *bytes, size_t len)
{
	uint8_t code[64] = {0};

	memcpy(code + V8_CODE_BEFORE - 4, bytes, len);
	return v8_frame_state(&arch_x86_64, code, V8_CODE_BEFORE - 4 + len);
}

#define STATE(bytes) state_of(bytes, sizeof(bytes) - 1)

static void test_x86_64(void **state)
{
	/* mov rbx, [rcx-8]; test; jne; push rbp; mov rbp, rsp; push rsi */
	assert_int_equal(STATE("\x90\x90\x90\x90\x48\x8b\x59\xf8\xf6\x43\x35\x01\x75\x05\x55\x48\x89\xe5\x56"), V8_FRAME_NONE);
	assert_int_equal(STATE("\x90\x90\x90\x90\x55\x48\x89\xe5\x56\x57"), V8_FRAME_NONE);
	assert_int_equal(STATE("\x90\x90\x90\x55\x48\x89\xe5\x56\x57\x50"), V8_FRAME_PUSHED);
	assert_int_equal(STATE("\x55\x48\x89\xe5\x56\x57\x50\x48\x83\xec\x08"), V8_FRAME_WHOLE);
	assert_int_equal(STATE("\x90\x90\x90\x90\x48\x89\xe5"), V8_FRAME_WHOLE);
	/* mov rsp, rbp; pop rbp; cmp rcx, 3; jg; ret 24; pop r10; lea rsp, [rsp+rcx*8]; push r10; ret */
	static const char end[] = "\x90\x90\x90\x90\x48\x8b\xe5\x5d\x48\x83\xf9\x03\x7f\x03\xc2\x18\x00\x41\x5a\x48\x8d\x24\xcc\x41\x52\xc3";
	static const struct {
		size_t at;
		enum v8_frame_state state;
	} known[] = {
		{0, V8_FRAME_WHOLE}, {3, V8_FRAME_WHOLE}, {4, V8_FRAME_NONE},     {8, V8_FRAME_NONE},     {10, V8_FRAME_NONE},
		{13, V8_FRAME_NONE}, {15, V8_FRAME_SCRATCH}, {19, V8_FRAME_SCRATCH}, {21, V8_FRAME_NONE},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_int_equal(state_of(end + known[i].at, sizeof(end) - 1 - known[i].at), known[i].state);
	assert_int_equal(STATE("\x90\x90\x90\x90"), V8_FRAME_WHOLE);
	assert_int_equal(STATE("\x90\x90\x90\x90\x48\x83\xf9"), V8_FRAME_WHOLE);
}

/* At each of the instructions, which begin there, and at the one behind the call. */
static void expect_baseline(const uint8_t *code, size_t size, const size_t *starts, size_t behind)
{
	uint8_t bytes[64] = {0};

	memcpy(bytes + V8_CODE_BEFORE, code, size);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(v8_frame_state(&arch_x86_64, bytes + starts[i], V8_CODE_BEFORE + 24), V8_FRAME_NONE);
	assert_int_equal(v8_frame_state(&arch_x86_64, bytes + behind, V8_CODE_BEFORE + 24), V8_FRAME_WHOLE);
	assert_int_equal(v8_frame_state(&arch_x86_64, bytes + behind + 1, V8_CODE_BEFORE + 24), V8_FRAME_WHOLE);
	bytes[V8_CODE_BEFORE] = 0x90; /* what is called elsewhere has a frame already */
	assert_int_equal(v8_frame_state(&arch_x86_64, bytes + starts[2], V8_CODE_BEFORE + 24), V8_FRAME_WHOLE);
}

/*
 * As V8 10.2 compiled it: mov ebx, 48; movabs r12; call BaselineOutOfLinePrologue; push rax, three times. And 12.4, of a function that
 * needs no registers: xor ebx, ebx; movabs r12; call; mov rbx, [rbp-48]. And both with --no-short-builtin-calls, as where the
 * heap is to be small: call [r13+…].
 */
static void test_baseline_x86_64(void **state)
{
	static const uint8_t mov[] = "\xbb\x30\x00\x00\x00\x49\xbc\x41\xdb\x6d\xf8\xa8\x1a\x00\x00"
				     "\xe8\x2c\x88\xd4\x7f\x50\x50\x50\x48\x8b\x45\x20";
	static const uint8_t xor[] = "\x33\xdb\x49\xbc\x59\x11\x4c\xd3\xab\x18\x00\x00"
				     "\xe8\xef\xb6\xe0\x1f\x48\x8b\x5d\xd0\x48\x8b\x5b\x1f";
	static const uint8_t mov_far[] = "\xbb\x38\x00\x00\x00\x49\xbc\x21\x51\xc4\x46\x18\x28\x00\x00"
					 "\x41\xff\x95\xd0\x50\x00\x00\x50\x50\x50\x50\x48\x8b\x45\x20";
	static const uint8_t xor_far[] = "\x33\xdb\x49\xbc\x59\x11\x00\xf5\xbe\x2b\x00\x00"
					 "\x41\xff\x95\xd0\x50\x00\x00\x48\x8b\x5d\xd0\x48\x8b\x5b\x1f";

	expect_baseline(mov, sizeof(mov), (const size_t[]){0, 5, 15}, 20);
	expect_baseline(xor, sizeof(xor), (const size_t[]){0, 2, 12}, 17);
	expect_baseline(mov_far, sizeof(mov_far), (const size_t[]){0, 5, 15}, 22);
	expect_baseline(xor_far, sizeof(xor_far), (const size_t[]){0, 2, 12}, 19);
}

static void test_begins(void **state)
{
	static const uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xa9be03ff, 0xa9016fe1}, body[] = {0xf8520342, 0xf90003fb};

	assert_true(v8_begins_frame(&arch_aarch64, (const uint8_t *)code, sizeof(code)));
	assert_false(v8_begins_frame(&arch_aarch64, (const uint8_t *)body, sizeof(body)));
	assert_false(v8_begins_frame(&arch_x86_64, (const uint8_t *)code, sizeof(code)));
	assert_false(v8_begins_frame(&arch_aarch64, (const uint8_t *)code, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prologue), cmocka_unit_test(test_epilogue), cmocka_unit_test(test_body),
		cmocka_unit_test(test_x86_64),
		cmocka_unit_test(test_baseline_x86_64),	 cmocka_unit_test(test_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
