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
	enum blob_kind kind;
};

enum { LINK = 0x5000 }; /* in another method */

/* `below`: what is saved below a whole frame. */
static enum top_state at_with(const struct code *code, unsigned offset, uint64_t link, uint64_t *below)
{
	const struct top_at at = {.pc = CODE + offset, .link = link};
	const struct blob blob = {
		.kind = code->kind,
		.code_begin = CODE,
		.code_end = CODE + code->len,
		.frame_size = code->frame_size,
		.frame_complete = code->complete,
	};
	uint64_t start, len;

	assert_true(top_window(&blob, CODE + offset, &start, &len));
	assert_in_range(start, CODE, CODE + offset);
	assert_in_range(start + len, CODE + offset, CODE + code->len);
	return top_find(code->arch, &blob, &at, code->bytes + (start - CODE), start, len, below);
}

/* A thread that has called nothing yet, or has its return address back. */
static enum top_state at(const struct code *code, unsigned offset)
{
	uint64_t below;
	enum top_state state = at_with(code, offset, code->arch->ra_in_register ? LINK : 0, &below);

	assert_int_equal(below, 0);
	return state;
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
	const struct code code = {&arch_aarch64, small_aarch64, sizeof(small_aarch64), 20, 6, BLOB_COMPILED};
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
	const struct code code = {&arch_aarch64, bytes, sizeof(bytes), 12, 162, BLOB_COMPILED};
	static const enum top_state want[] = {
		TOP_NONE, TOP_RECORD, TOP_RECORD, TOP_WHOLE, TOP_WHOLE, TOP_WHOLE, TOP_RECORD, TOP_NONE,
	};

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(at(&code, 4 * i), want[i]);
}

/* Around a call into the virtual machine 8 and 11 have its return address below their frame; and the smallest of all frames. */
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
	const struct code code = {&arch_aarch64, bytes, sizeof(bytes), 8, 2, BLOB_COMPILED};
	static const enum top_state want[] = {
		TOP_NONE, TOP_UNSAVED, TOP_WHOLE, TOP_WHOLE, TOP_WHOLE, TOP_WHOLE, TOP_WHOLE, TOP_WHOLE, TOP_WHOLE, TOP_NONE,
	};
	uint64_t below;

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_int_equal(at_with(&code, 4 * i, LINK, &below), want[i]);
		assert_int_equal(below, i == 5 || i == 6 ? 16 : 0);
	}
}

/* A whole method of 25, as it was compiled: when a safepoint is wanted, it goes from its end, without a frame, to what is behind. */
static void test_safepoint_aarch64(void **state)
{
	static const uint8_t bytes[] = {
		INSN(0xd503201f), /*   0: nop */
		INSN(0xd503201f), /*   4: nop */
		INSN(0xd503201f), /*   8: nop */
		INSN(0xb9400828), /*  12: ldr w8, [x1, #8] */
		INSN(0xb940092a), /*  16: ldr w10, [x9, #8] */
		INSN(0x6b0a011f), /*  20: cmp w8, w10 */
		INSN(0x54000040), /*  24: b.eq 32 */
		INSN(0x17ea8fe1), /*  28: b: not of this class */
		INSN(0xd503201f), /*  32: nop */
		INSN(0xd14053e9), /*  36: sub x9, sp, #0x14, lsl #12 */
		INSN(0xf900013f), /*  40: str xzr, [x9] */
		INSN(0xd100c3ff), /*  44: sub sp, sp, #0x30 */
		INSN(0xa9027bfd), /*  48: stp x29, x30, [sp, #32] */
		INSN(0x180005a8), /*  52: ldr w8, 232 */
		INSN(0xb9402389), /*  56: ldr w9, [x28, #32] */
		INSN(0xeb09011f), /*  60: cmp x8, x9 */
		INSN(0x540004a1), /*  64: b.ne 212 */
		INSN(0xb940702b), /*  68: ldr w11, [x1, #112] */
		INSN(0xd37df16a), /*  72: lsl x10, x11, #3 */
		INSN(0xb9400d4c), /*  76: ldr w12, [x10, #12] */
		INSN(0x5100058b), /*  80: sub w11, w12, #0x1 */
		INSN(0x3400016c), /*  84: cbz w12, 128 */
		INSN(0x3400020c), /*  88: cbz w12, 152 */
		INSN(0x6b0c017f), /*  92: cmp w11, w12 */
		INSN(0x540001c2), /*  96: b.cs 152 */
		INSN(0x93407d82), /* 100: sxtw x2, w12 */
		INSN(0x320007e1), /* 104: orr w1, wzr, #0x3 */
		INSN(0x91004140), /* 108: add x0, x10, #0x10 */
		INSN(0x97eab1fc), /* 112: bl: a routine that fills */
		INSN(0xd503201f), /* 116: nop */
		INSN(0xf280001f), /* 120: movk xzr, #0x0 */
		INSN(0xf280001f), /* 124: movk xzr, #0x0 */
		INSN(0xa9427bfd), /* 128: ldp x29, x30, [sp, #32] */
		INSN(0x9100c3ff), /* 132: add sp, sp, #0x30 */
		INSN(0xf9401788), /* 136: ldr x8, [x28, #40] */
		INSN(0xeb2863ff), /* 140: cmp sp, x8 */
		INSN(0x540001c8), /* 144: b.hi 200 */
		INSN(0xd65f03c0), /* 148: ret */
		INSN(0x12801221), /* 152: mov w1, #0xffffff6e */
		INSN(0xaa0a03fd), /* 156: mov x29, x10 */
		INSN(0xb90007ec), /* 160: str w12, [sp, #4] */
		INSN(0x97eba5ef), /* 164: bl: does not return */
		INSN(0xd503201f), /* 168: nop */
		INSN(0xf280341f), /* 172: movk xzr, #0x1a0 */
		INSN(0xf280001f), /* 176: movk xzr, #0x0 */
		INSN(0x12800121), /* 180: mov w1, #0xfffffff6 */
		INSN(0x97eba5ea), /* 184: bl: nor does this */
		INSN(0xd503201f), /* 188: nop */
		INSN(0xf280369f), /* 192: movk xzr, #0x1b4 */
		INSN(0xf280201f), /* 196: movk xzr, #0x100 */
		INSN(0x10fffe08), /* 200: adr x8, 136 */
		INSN(0xf902a388), /* 204: str x8, [x28, #1344] */
		INSN(0x17ea9594), /* 208: b: waits until the safepoint is over */
		INSN(0xd2930008), /* 212: mov x8, #0x9800 */
		INSN(0xf2b2f6e8), /* 216: movk x8, #0x97b7, lsl #16 */
		INSN(0xf2dfffe8), /* 220: movk x8, #0xffff, lsl #32 */
		INSN(0xd63f0100), /* 224: blr x8 */
		INSN(0x17ffffd8), /* 228: b 68 */
		INSN(0x00000001), /* 232: data */
		INSN(0x00000000), /* 236: data */
		INSN(0x17eba63c), /* 240: b: an exception has come from what it called */
		INSN(0x1000001e), /* 244: adr x30, 244: it was given up */
		INSN(0x17ea960a), /* 248: b */
	};
	const struct code code = {&arch_aarch64, bytes, sizeof(bytes), 68, 6, BLOB_COMPILED};

	for (unsigned i = 0; i < sizeof(bytes); i += 4) {
		enum top_state want = i <= 44 || (i >= 136 && i <= 148) || (i >= 200 && i <= 208) ? TOP_NONE : i == 48 ? TOP_UNSAVED : TOP_WHOLE;

		assert_int_equal(at(&code, i), want);
	}
}

/* The jump may take three instructions, and so may that of a method that an exception ends. */
static void test_far_jumps_aarch64(void **state)
{
	static const uint8_t bytes[] = {
		INSN(0xd10103ff), /*  0: sub sp, sp, #64 */
		INSN(0xa9037bfd), /*  4: stp x29, x30, [sp, #48] */
		INSN(0x94000010), /*  8: bl */
		INSN(0x17fffffe), /* 12: b 4 */
		INSN(0x10ffff88), /* 16: adr x8, 0 */
		INSN(0xf902a388), /* 20: str x8, [x28, #1344] */
		INSN(0xb0ffffe8), /* 24: adrp x8 */
		INSN(0x91022108), /* 28: add x8, x8, #0x88 */
		INSN(0xd61f0100), /* 32: br x8 */
		INSN(0xf942f780), /* 36: ldr x0, [x28, #1512] */
		INSN(0xf902f79f), /* 40: str xzr, [x28, #1512] */
		INSN(0xa9437bfd), /* 44: ldp x29, x30, [sp, #48] */
		INSN(0x910103ff), /* 48: add sp, sp, #64 */
		INSN(0xb0ffffe8), /* 52: adrp x8 */
		INSN(0x91022108), /* 56: add x8, x8, #0x88 */
		INSN(0xd61f0100), /* 60: br x8 */
		INSN(0x10000189), /* 64: adr x9, 112 */
		INSN(0xcb080929), /* 68: sub x9, x9, x8, lsl #2 */
		INSN(0xd61f0120), /* 72: br x9: in a loop that is not begun at its start */
	};
	const struct code code = {&arch_aarch64, bytes, sizeof(bytes), 8, 8, BLOB_COMPILED};
	static const enum top_state want[] = {
		TOP_NONE, TOP_UNSAVED, TOP_WHOLE, TOP_WHOLE, TOP_NONE, TOP_NONE, TOP_NONE, TOP_NONE, TOP_NONE, TOP_WHOLE,
		TOP_WHOLE, TOP_WHOLE, TOP_WHOLE, TOP_NONE, TOP_NONE, TOP_NONE, TOP_WHOLE, TOP_WHOLE, TOP_WHOLE,
	};

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(at(&code, 4 * i), want[i]);
}

/* What G1 does before a field is written, as 25 has it behind the method: registers are saved for a call. */
static void test_saved_aarch64(void **state)
{
	static const uint8_t bytes[] = {
		INSN(0xd10103ff), /*  0: sub sp, sp, #64 */
		INSN(0xa9037bfd), /*  4: stp x29, x30, [sp, #48] */
		INSN(0xa9be0fe1), /*  8: stp x1, x3, [sp, #-32]! */
		INSN(0xa9017feb), /* 12: stp x11, xzr, [sp, #16] */
		INSN(0x6dbf07e0), /* 16: stp d0, d1, [sp, #-16]! */
		INSN(0xd288f008), /* 20: mov x8, #0x4780 */
		INSN(0xf2b5e7a8), /* 24: movk x8, #0xaf3d, lsl #16 */
		INSN(0xd63f0100), /* 28: blr x8 */
		INSN(0x6cc107e0), /* 32: ldp d0, d1, [sp], #16 */
		INSN(0xa9417feb), /* 36: ldp x11, xzr, [sp, #16] */
		INSN(0xa8c20fe1), /* 40: ldp x1, x3, [sp], #32 */
		INSN(0x17fffff7), /* 44: b 8 */
		INSN(0x0c882ffc), /* 48: st1 {v28.1d-v31.1d}, [sp], x8 */
		INSN(0x17fffff5), /* 52: b 8 */
	};
	const struct code code = {&arch_aarch64, bytes, sizeof(bytes), 8, 8, BLOB_COMPILED};
	static const unsigned want[] = {0, 0, 0, 32, 32, 48, 48, 48, 48, 32, 32, 0};
	uint64_t below;

	for (unsigned i = 2; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_int_equal(at_with(&code, 4 * i, CODE + 4, &below), TOP_WHOLE);
		assert_int_equal(below, want[i]);
	}
	assert_int_equal(at_with(&code, 48, CODE + 4, &below), TOP_UNKNOWN);
}

/* The wrapper of a native method, as 25 makes it. */
static void test_wrapper_aarch64(void **state)
{
	static const uint8_t bytes[] = {
		INSN(0xa9bf7bfd), /*  0: stp x29, x30, [sp, #-16]! */
		INSN(0x910003fd), /*  4: mov x29, sp */
		INSN(0xd10143ff), /*  8: sub sp, sp, #80 */
		INSN(0xd63f0100), /* 12: blr x8 */
		INSN(0xa9b707e0), /* 16: stp x0, x1, [sp, #-144]! */
		INSN(0x0c882ffc), /* 20: st1 {v28.1d-v31.1d}, [sp], x8 */
		INSN(0xa8c907e0), /* 24: ldp x0, x1, [sp], #144 */
		INSN(0x910003bf), /* 28: mov sp, x29 */
		INSN(0xa8c17bfd), /* 32: ldp x29, x30, [sp], #16 */
		INSN(0xf9401788), /* 36: ldr x8, [x28, #40] */
		INSN(0x36000088), /* 40: tbz w8, #0, 56 */
		INSN(0x10ffffe8), /* 44: adr x8, 40 */
		INSN(0xf902a388), /* 48: str x8, [x28, #1344] */
		INSN(0x17eaaa5e), /* 52: b */
		INSN(0xf9400788), /* 56: ldr x8, [x28, #8] */
		INSN(0xb5000048), /* 60: cbnz x8, 68 */
		INSN(0xd65f03c0), /* 64: ret */
		INSN(0x17e9c17a), /* 68: b */
	};
	const struct code code = {&arch_aarch64, bytes, sizeof(bytes), 12, 12, BLOB_NATIVE};
	static const enum top_state want[] = {
		TOP_NONE, TOP_RECORD, TOP_RECORD, TOP_AT_FP, TOP_AT_FP, TOP_AT_FP, TOP_AT_FP, TOP_AT_FP, TOP_RECORD,
		TOP_NONE, TOP_NONE, TOP_NONE, TOP_NONE, TOP_NONE, TOP_NONE, TOP_NONE, TOP_NONE, TOP_NONE,
	};

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(at(&code, 4 * i), want[i]);
}

/* A second frame, for a call to the virtual machine. */
static void test_second_frame_aarch64(void **state)
{
	static const uint8_t bytes[] = {
		INSN(0xd10103ff), /*  0: sub sp, sp, #64 */
		INSN(0xa9037bfd), /*  4: stp x29, x30, [sp, #48] */
		INSN(0xa9bf7bfd), /*  8: stp x29, x30, [sp, #-16]! */
		INSN(0x910003fd), /* 12: mov x29, sp */
		INSN(0xd63f0100), /* 16: blr x8 */
		INSN(0x910003bf), /* 20: mov sp, x29 */
		INSN(0xa8c17bfd), /* 24: ldp x29, x30, [sp], #16 */
		INSN(0x17fffffb), /* 28: b 8 */
	};
	const struct code code = {&arch_aarch64, bytes, sizeof(bytes), 8, 8, BLOB_COMPILED};

	for (unsigned i = 3; i < 6; i++)
		assert_int_equal(at(&code, 4 * i), TOP_UNKNOWN);
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
	const struct code code = {&arch_x86_64, bytes, sizeof(bytes), 12, 6, BLOB_COMPILED};

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

/* When a safepoint is wanted, when an exception ends the method, and when it has one of its own. */
static void test_jumps_x86_64(void **state)
{
	static const uint8_t bytes[] = {
		0x55,                                     /*  0: push rbp */
		0x48, 0x83, 0xec, 0x20,                   /*  1: sub rsp, 0x20 */
		0xe8, 0x00, 0x00, 0x00, 0x00,             /*  5: call */
		0x4c, 0x8d, 0x15, 0xf0, 0xff, 0xff, 0xff, /* 10: lea r10, [rip - 16] */
		0x4d, 0x89, 0x97, 0x50, 0x04, 0x00, 0x00, /* 17: mov [r15 + 0x450], r10 */
		0xe9, 0x00, 0x10, 0x00, 0x00,             /* 24: jmp */
		0x49, 0x8b, 0x87, 0x18, 0x05, 0x00, 0x00, /* 29: mov rax, [r15 + 0x518] */
		0x48, 0x83, 0xc4, 0x20,                   /* 36: add rsp, 0x20 */
		0x5d,                                     /* 40: pop rbp */
		0xe9, 0x00, 0x10, 0x00, 0x00,             /* 41: jmp */
		0xe9, 0x00, 0x10, 0x00, 0x00,             /* 46: jmp */
	};
	const struct code code = {&arch_x86_64, bytes, sizeof(bytes), 5, 6, BLOB_COMPILED};

	assert_int_equal(at(&code, 5), TOP_WHOLE);
	assert_int_equal(at(&code, 10), TOP_NONE);
	assert_int_equal(at(&code, 17), TOP_NONE);
	assert_int_equal(at(&code, 24), TOP_NONE);
	assert_int_equal(at(&code, 29), TOP_WHOLE);
	assert_int_equal(at(&code, 36), TOP_WHOLE);
	assert_int_equal(at(&code, 40), TOP_RECORD);
	assert_int_equal(at(&code, 41), TOP_NONE);
	assert_int_equal(at(&code, 46), TOP_WHOLE);
}

static void test_wrapper_x86_64(void **state)
{
	static const uint8_t bytes[] = {
		0x55,                               /*  0: push rbp */
		0x48, 0x8b, 0xec,                   /*  1: mov rbp, rsp */
		0x48, 0x83, 0xec, 0x50,             /*  4: sub rsp, 0x50 */
		0x41, 0xff, 0xd2,                   /*  8: call r10 */
		0x57,                               /* 11: push rdi */
		0xc9,                               /* 12: leave */
		0x49, 0x83, 0x7f, 0x08, 0x00,       /* 13: cmp [r15 + 8], 0 */
		0x0f, 0x85, 0x01, 0x00, 0x00, 0x00, /* 18: jne */
		0xc3,                               /* 24: ret */
	};
	const struct code code = {&arch_x86_64, bytes, sizeof(bytes), 8, 12, BLOB_NATIVE};

	assert_int_equal(at(&code, 0), TOP_NONE);
	assert_int_equal(at(&code, 4), TOP_RECORD);
	assert_int_equal(at(&code, 8), TOP_AT_FP);
	assert_int_equal(at(&code, 11), TOP_AT_FP);
	assert_int_equal(at(&code, 12), TOP_AT_FP);
	assert_int_equal(at(&code, 13), TOP_NONE);
	assert_int_equal(at(&code, 18), TOP_NONE);
	assert_int_equal(at(&code, 24), TOP_NONE);
}

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
	const struct code code = {&arch_x86_64, bytes, sizeof(bytes), 8, 6, BLOB_COMPILED};
	const struct code unknown = {&arch_x86_64, other, sizeof(other), 8, 6, BLOB_COMPILED};

	assert_int_equal(at(&code, 0), TOP_NONE);
	assert_int_equal(at(&code, 1), TOP_RECORD);
	assert_int_equal(at(&code, 4), TOP_RECORD);
	assert_int_equal(at(&code, 8), TOP_WHOLE);
	assert_int_equal(at(&unknown, 2), TOP_UNKNOWN);
}

/* Without a check of the stack's depth; the poll of 8 and 11. */
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
	const struct code code = {&arch_x86_64, bytes, sizeof(bytes), 12, 6, BLOB_COMPILED};

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
	const struct code cut = {&arch_aarch64, small_aarch64, 14, 1000, 6, BLOB_COMPILED};
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
		cmocka_unit_test(test_safepoint_aarch64),
		cmocka_unit_test(test_far_jumps_aarch64),
		cmocka_unit_test(test_saved_aarch64),
		cmocka_unit_test(test_wrapper_aarch64),
		cmocka_unit_test(test_second_frame_aarch64),
		cmocka_unit_test(test_push_x86_64),
		cmocka_unit_test(test_jumps_x86_64),
		cmocka_unit_test(test_wrapper_x86_64),
		cmocka_unit_test(test_sub_x86_64),
		cmocka_unit_test(test_frame_pointer_x86_64),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
