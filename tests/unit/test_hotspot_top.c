/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "runtime/hotspot/top.h"

enum { CODE = 0x10000 };

/* A method whose code is these bytes, the first `complete` of which build its frame of so many words. */
struct code {
	const struct arch *arch;
	const uint8_t *bytes;
	size_t len;
	unsigned complete;
	unsigned frame_size;
};

static enum top_state at(const struct code *code, unsigned offset)
{
	const struct blob blob = {
		.code_begin = CODE,
		.code_end = CODE + code->len,
		.frame_size = code->frame_size,
		.frame_complete = code->complete,
	};
	uint64_t start, len;

	assert_true(top_window(&blob, CODE + offset, &start, &len));
	assert_in_range(start, CODE, CODE + offset);
	assert_in_range(start + len, CODE + offset, CODE + code->len);
	return top_find(code->arch, &blob, CODE + offset, code->bytes + (start - CODE), start, len);
}

#define INSN(word) (uint8_t)(word), (uint8_t)((word) >> 8), (uint8_t)((word) >> 16), (uint8_t)((word) >> 24)

static const uint8_t small_aarch64[] = {
	INSN(0xd503201f), /*  0: nop */
	INSN(0xd1400be9), /*  4: sub x9, sp, #0x2, lsl #12 */
	INSN(0xf900013f), /*  8: str xzr, [x9] */
	INSN(0xd100c3ff), /* 12: sub sp, sp, #48 */
	INSN(0xa9027bfd), /* 16: stp x29, x30, [sp, #32] */
	INSN(0x94000010), /* 20: bl */
	INSN(0xa9427bfd), /* 24: ldp x29, x30, [sp, #32] */
	INSN(0x9100c3ff), /* 28: add sp, sp, #48 */
	INSN(0xf9402788), /* 32: ldr x8, [x28, #72] */
	INSN(0xeb2863ff), /* 36: cmp sp, x8 */
	INSN(0x54000048), /* 40: b.hi */
	INSN(0xd65f03c0), /* 44: ret */
};

static void test_small_aarch64(void **state)
{
	const struct code code = {&arch_aarch64, small_aarch64, sizeof(small_aarch64), 20, 6};
	static const enum top_state want[] = {
		TOP_NONE, TOP_NONE, TOP_NONE, TOP_NONE, TOP_UNSAVED, TOP_WHOLE, TOP_WHOLE, TOP_WHOLE, TOP_NONE, TOP_NONE, TOP_NONE, TOP_NONE,
	};

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(at(&code, 4 * i), want[i]);
}

/* Too large for one instruction. */
static void test_large_aarch64(void **state)
{
	static const uint8_t bytes[] = {
		INSN(0xa9bf7bfd), /*  0: stp x29, x30, [sp, #-16]! */
		INSN(0xd280a008), /*  4: mov x8, #0x500 */
		INSN(0xcb2863ff), /*  8: sub sp, sp, x8 */
		INSN(0x94000010), /* 12: bl */
		INSN(0xd280a008), /* 16: mov x8, #0x500 */
		INSN(0x8b2863ff), /* 20: add sp, sp, x8 */
		INSN(0xa8c17bfd), /* 24: ldp x29, x30, [sp], #16 */
		INSN(0xd65f03c0), /* 28: ret */
	};
	const struct code code = {&arch_aarch64, bytes, sizeof(bytes), 12, 162};
	static const enum top_state want[] = {
		TOP_NONE, TOP_RECORD, TOP_RECORD, TOP_WHOLE, TOP_WHOLE, TOP_WHOLE, TOP_RECORD, TOP_NONE,
	};

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(at(&code, 4 * i), want[i]);
}

/* A call into the virtual machine, as 8 and 11 make it, and the smallest of all frames. */
static void test_leaving_aarch64(void **state)
{
	static const uint8_t bytes[] = {
		INSN(0xd10043ff), /*  0: sub sp, sp, #16 */
		INSN(0xa9007bfd), /*  4: stp x29, x30, [sp] */
		INSN(0x10000089), /*  8: adr x9, 24 */
		INSN(0xd280a008), /* 12: mov x8, #0x500 */
		INSN(0xa9bf27ff), /* 16: stp xzr, x9, [sp, #-16]! */
		INSN(0xd63f0100), /* 20: blr x8 */
		INSN(0x910043ff), /* 24: add sp, sp, #16 */
		INSN(0xa9407bfd), /* 28: ldp x29, x30, [sp] */
		INSN(0x910043ff), /* 32: add sp, sp, #16 */
		INSN(0xd65f03c0), /* 36: ret */
	};
	const struct code code = {&arch_aarch64, bytes, sizeof(bytes), 8, 2};
	static const enum top_state want[] = {
		TOP_NONE, TOP_UNSAVED, TOP_WHOLE, TOP_WHOLE, TOP_WHOLE, TOP_UNKNOWN, TOP_UNKNOWN, TOP_WHOLE, TOP_WHOLE, TOP_NONE,
	};

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(at(&code, 4 * i), want[i]);
}

static void test_push_x86_64(void **state)
{
	static const uint8_t bytes[] = {
		0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, /*  0: mov [rsp - 0x14000], eax */
		0x55,                                     /*  7: push rbp */
		0x48, 0x83, 0xec, 0x20,                   /*  8: sub rsp, 0x20 */
		0xe8, 0x00, 0x00, 0x00, 0x00,             /* 12: call */
		0x48, 0x83, 0xc4, 0x20,                   /* 17: add rsp, 0x20 */
		0x5d,                                     /* 21: pop rbp */
		0x49, 0x3b, 0xa7, 0x48, 0x03, 0x00, 0x00, /* 22: cmp rsp, [r15 + 0x348] */
		0x0f, 0x87, 0x01, 0x00, 0x00, 0x00,       /* 29: ja */
		0xc3,                                     /* 35: ret */
	};
	const struct code code = {&arch_x86_64, bytes, sizeof(bytes), 12, 6};

	assert_int_equal(at(&code, 0), TOP_NONE);
	assert_int_equal(at(&code, 7), TOP_NONE);
	assert_int_equal(at(&code, 8), TOP_RECORD);
	assert_int_equal(at(&code, 12), TOP_WHOLE);
	assert_int_equal(at(&code, 17), TOP_WHOLE);
	assert_int_equal(at(&code, 21), TOP_RECORD);
	assert_int_equal(at(&code, 22), TOP_NONE);
	assert_int_equal(at(&code, 29), TOP_NONE);
	assert_int_equal(at(&code, 35), TOP_NONE);
}

/* Without a check of the stack's depth; the poll of 8 and 11. */
/* With -XX:+PreserveFramePointer, and in stubs. */
static void test_frame_pointer_x86_64(void **state)
{
	static const uint8_t bytes[] = {
		0x55,                         /*  0: push rbp */
		0x48, 0x8b, 0xec,             /*  1: mov rbp, rsp */
		0x48, 0x83, 0xec, 0x20,       /*  4: sub rsp, 0x20 */
		0xe8, 0x00, 0x00, 0x00, 0x00, /*  8: call */
		0x5d, 0xc3,
	};
	static const uint8_t other[] = {0x41, 0x57, 0x90, 0x90, 0x48, 0x83, 0xec, 0x20, 0x5d, 0xc3}; /* push r15 */
	const struct code code = {&arch_x86_64, bytes, sizeof(bytes), 8, 6}, unknown = {&arch_x86_64, other, sizeof(other), 8, 6};

	assert_int_equal(at(&code, 0), TOP_NONE);
	assert_int_equal(at(&code, 1), TOP_RECORD);
	assert_int_equal(at(&code, 4), TOP_RECORD);
	assert_int_equal(at(&code, 8), TOP_WHOLE);
	assert_int_equal(at(&unknown, 2), TOP_UNKNOWN);
}

static void test_sub_x86_64(void **state)
{
	static const uint8_t bytes[] = {
		0x48, 0x81, 0xec, 0x28, 0x00, 0x00, 0x00, /*  0: sub rsp, 0x28 */
		0x48, 0x89, 0x6c, 0x24, 0x20,             /*  7: mov [rsp + 0x20], rbp */
		0xe8, 0x00, 0x00, 0x00, 0x00,             /* 12: call */
		0x48, 0x83, 0xc4, 0x20,                   /* 17: add rsp, 0x20 */
		0x5d,                                     /* 21: pop rbp */
		0x85, 0x05, 0x00, 0x00, 0x00, 0x00,       /* 22: test eax, [rip] */
		0xc3,                                     /* 28: ret */
	};
	const struct code code = {&arch_x86_64, bytes, sizeof(bytes), 12, 6};

	assert_int_equal(at(&code, 0), TOP_NONE);
	assert_int_equal(at(&code, 7), TOP_UNSAVED);
	assert_int_equal(at(&code, 12), TOP_WHOLE);
	assert_int_equal(at(&code, 21), TOP_RECORD);
	assert_int_equal(at(&code, 22), TOP_NONE);
	assert_int_equal(at(&code, 28), TOP_NONE);
}

/* A blob may say anything of itself. */
static void test_hostile(void **state)
{
	const struct blob blob = {.code_begin = CODE, .code_end = CODE + 0x100000, .frame_size = 6, .frame_complete = 0x100000};
	const struct code cut = {&arch_aarch64, small_aarch64, 14, 1000, 6};
	uint64_t start, len;

	assert_false(top_window(&blob, CODE + 0x80000, &start, &len));
	assert_int_equal(at(&cut, 13), TOP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_aarch64),
		cmocka_unit_test(test_large_aarch64),
		cmocka_unit_test(test_leaving_aarch64),
		cmocka_unit_test(test_push_x86_64),
		cmocka_unit_test(test_sub_x86_64),
		cmocka_unit_test(test_frame_pointer_x86_64),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
