/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <string.h>

#include "elfmake.h"
#include "gomake.h"
#include "scratch.h"
#include "tinyworld.h"
#include "elf/go_funcs.h"
#include "unwind/bpf_rows.h"

enum {
	RAX = 0,
	RDI = 5,
	RBP = 6,
	RSP = 7,
	R10 = 10,
	X19 = 19,
	FP = 29,
	LR = 30,
	SP = 31,

	TEXT = 0x10000, /* of made-up files with sections only */
	TEXT_LEN = 0x40000,
};

static struct bpf_rows build(struct tiny *t)
{
	struct bpf_rows rows;
	struct err err;
	uint64_t vaddr;

	tiny_load(t);
	if (bpf_rows_build(modules_find(t->target->modules, TINY_CODE, &vaddr)->image, t->arch, &err, &rows) != 0)
		fail_msg("%s", err.msg);
	return rows;
}

static struct unwind_row at(const struct bpf_rows *rows, uint64_t vaddr)
{
	struct unwind_row found = {0};

	assert_int_equal(rows->data[0].pc, 0);
	for (size_t i = 0; i < rows->len && rows->base + rows->data[i].pc <= vaddr; i++) {
		assert_true(i == 0 || rows->data[i].pc > rows->data[i - 1].pc);
		found = rows->data[i];
	}
	return found;
}

#define EXPECT_ROW(rows, vaddr, ...)                                                                                   \
	do {                                                                                                           \
		struct unwind_row row_ = at(rows, vaddr), want_ = {__VA_ARGS__};                                       \
		assert_int_equal(row_.kind, want_.kind);                                                               \
		assert_int_equal(row_.flags, want_.flags);                                                             \
		assert_int_equal(row_.cfa, want_.cfa);                                                                 \
		assert_int_equal(row_.fp, want_.fp);                                                                   \
		assert_int_equal(row_.ra, want_.ra);                                                                   \
	} while (0)

/* The row of one function with this program. */
#define EXPECT_OF(arch, program, ...)                                                                                  \
	do {                                                                                                           \
		const uint8_t code_[] = program;                                                                       \
		struct tiny *t_ = tiny_create(arch);                                                                   \
		struct bpf_rows rows_;                                                                                 \
		cfimake_fde(&t_->eh_frame, t_->cie, TINY_CODE_AT, 16, code_, sizeof(code_));                           \
		rows_ = build(t_);                                                                                     \
		EXPECT_ROW(&rows_, TINY_CODE_AT - 1, .kind = UNWIND_NONE);                                             \
		EXPECT_ROW(&rows_, TINY_CODE_AT, __VA_ARGS__);                                                         \
		EXPECT_ROW(&rows_, TINY_CODE_AT + 15, __VA_ARGS__);                                                    \
		EXPECT_ROW(&rows_, TINY_CODE_AT + 16, .kind = UNWIND_NONE);                                            \
		bpf_rows_deinit(&rows_);                                                                               \
		tiny_destroy(t_);                                                                                      \
	} while (0)

#define P(...)                                                                                                         \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}

static void test_x86_64_rules(void **state)
{
	const struct arch *a = &arch_x86_64;

	EXPECT_OF(a, P(0x0c, RSP, 8, 0x90, 1), .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 1, .ra = -1);
	EXPECT_OF(a, P(0x0c, RBP, 16, 0x90, 1, 0x80 | RBP, 2), .kind = UNWIND_FROM_FP,
		  .flags = UNWIND_RA_AT_CFA | UNWIND_FP_AT_CFA, .cfa = 2, .fp = -2, .ra = -1);
	EXPECT_OF(a, P(0x0c, RSP, 32, 0x90, 1, 0x80 | RBP, 3), .kind = UNWIND_FROM_SP,
		  .flags = UNWIND_RA_AT_CFA | UNWIND_FP_AT_CFA, .cfa = 4, .fp = -3, .ra = -1);
	/* the caller's frame pointer is unchanged, or lost, or in another register */
	EXPECT_OF(a, P(0x0c, RSP, 8, 0x90, 1, 0x08, RBP), .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 1,
		  .ra = -1);
	EXPECT_OF(a, P(0x0c, RSP, 8, 0x90, 1, 0x07, RBP), .kind = UNWIND_FROM_SP,
		  .flags = UNWIND_RA_AT_CFA | UNWIND_FP_LOST, .cfa = 1, .ra = -1);
	EXPECT_OF(a, P(0x0c, RSP, 8, 0x90, 1, 0x09, RBP, R10), .kind = UNWIND_FROM_SP,
		  .flags = UNWIND_RA_AT_CFA | UNWIND_FP_LOST, .cfa = 1, .ra = -1);
	EXPECT_OF(a, P(0x0c, RSP, 8, 0x07, 16), .kind = UNWIND_END);
	EXPECT_OF(a, P(0x0c, RSP, 0, 0x09, 16, RDI), .kind = UNWIND_FROM_SP); /* as in vfork() */
}

static void test_x86_64_plt(void **state)
{
	const struct arch *a = &arch_x86_64;

	EXPECT_OF(a, P(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22, 0x90, 1),
		  .kind = UNWIND_PLT, .flags = UNWIND_RA_AT_CFA, .cfa = 11, .ra = -1);
	EXPECT_OF(a, P(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x39, 0x2a, 0x33, 0x24, 0x22, 0x90, 1),
		  .kind = UNWIND_PLT, .flags = UNWIND_RA_AT_CFA, .cfa = 9, .ra = -1);
	/* much like it, but not it: other offset, no literal, cut short */
	EXPECT_OF(a, P(0x0f, 11, 0x77, 16, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22, 0x90, 1),
		  .kind = UNWIND_UNSUPPORTED);
	EXPECT_OF(a, P(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x40, 0x2a, 0x33, 0x24, 0x22, 0x90, 1),
		  .kind = UNWIND_UNSUPPORTED);
	EXPECT_OF(a, P(0x0f, 10, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x90, 1),
		  .kind = UNWIND_UNSUPPORTED);
}

/* Frames that were aligned anew. */
static void test_x86_64_kept_cfa(void **state)
{
	const struct arch *a = &arch_x86_64;

	EXPECT_OF(a, P(0x0f, 3, 0x76, 0x78, 0x06, 0x90, 1, 0x10, RBP, 2, 0x76, 0), .kind = UNWIND_AT_FP,
		  .flags = UNWIND_FP_AT_FP, .cfa = -1);
	EXPECT_OF(a, P(0x0f, 6, 0x77, 0xa8, 1, 0x06, 0x23, 8, 0x90, 1, 0x80 | RBP, 2), .kind = UNWIND_AT_SP,
		  .flags = UNWIND_FP_AT_CFA, .cfa = 21, .fp = -2, .ra = 1);
	/* a frame pointer elsewhere than at fp + 0 is lost */
	EXPECT_OF(a, P(0x0f, 3, 0x76, 0x78, 0x06, 0x90, 1, 0x10, RBP, 2, 0x76, 8), .kind = UNWIND_AT_FP,
		  .flags = UNWIND_FP_LOST, .cfa = -1);
	/* another register, an odd offset, something more, not enough, the return address elsewhere, or in a register */
	EXPECT_OF(a, P(0x0f, 3, 0x73, 0x78, 0x06, 0x90, 1), .kind = UNWIND_UNSUPPORTED);
	EXPECT_OF(a, P(0x0f, 3, 0x76, 0x79, 0x06, 0x90, 1), .kind = UNWIND_UNSUPPORTED);
	EXPECT_OF(a, P(0x0f, 4, 0x76, 0x78, 0x06, 0x06, 0x90, 1), .kind = UNWIND_UNSUPPORTED);
	EXPECT_OF(a, P(0x0f, 2, 0x76, 0x78, 0x90, 1), .kind = UNWIND_UNSUPPORTED);
	EXPECT_OF(a, P(0x0f, 0, 0x90, 1), .kind = UNWIND_UNSUPPORTED);
	EXPECT_OF(a, P(0x0f, 3, 0x76, 0x78, 0x06, 0x90, 2), .kind = UNWIND_UNSUPPORTED);
	EXPECT_OF(a, P(0x0f, 3, 0x76, 0x78, 0x06, 0x09, 16, RDI), .kind = UNWIND_UNSUPPORTED);
}

static void test_x86_64_large_frames(void **state)
{
	const struct arch *a = &arch_x86_64;

	/* 262136, the last that fits; 262144; 2^34 - 8, the last of all; 2^34 */
	EXPECT_OF(a, P(0x0c, RSP, 0xf8, 0xff, 0x0f, 0x90, 1), .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA,
		  .cfa = 32767, .ra = -1);
	EXPECT_OF(a, P(0x0c, RSP, 0x80, 0x80, 0x10, 0x90, 1), .kind = UNWIND_FAR_FROM_SP, .cfa = -32768, .ra = 0);
	EXPECT_OF(a, P(0x0c, RSP, 0xf8, 0xff, 0xff, 0xff, 0x3f, 0x90, 1), .kind = UNWIND_FAR_FROM_SP, .cfa = -1,
		  .ra = 32767);
	EXPECT_OF(a, P(0x0c, RSP, 0x80, 0x80, 0x80, 0x80, 0x40, 0x90, 1), .kind = UNWIND_UNSUPPORTED);
	EXPECT_OF(a, P(0x0c, RBP, 0x80, 0x80, 0x10, 0x90, 1), .kind = UNWIND_UNSUPPORTED);
}

static void test_x86_64_unsupported(void **state)
{
	const struct arch *a = &arch_x86_64;

	EXPECT_OF(a, P(0x0c, R10, 8, 0x90, 1), .kind = UNWIND_UNSUPPORTED);            /* CFA by another register */
	EXPECT_OF(a, P(0x0c, RSP, 12, 0x90, 1), .kind = UNWIND_UNSUPPORTED);           /* no multiple of 8 */
	EXPECT_OF(a, P(0x90, 1), .kind = UNWIND_UNSUPPORTED);                          /* no CFA */
	EXPECT_OF(a, P(0x0c, RSP, 8), .kind = UNWIND_UNSUPPORTED);                     /* no return address */
	EXPECT_OF(a, P(0x0c, RSP, 8, 0x09, 16, RAX), .kind = UNWIND_UNSUPPORTED);      /* it is in one that nobody uses */
	EXPECT_OF(a, P(0x0c, RSP, 8, 0x90, 1, 0x87, 2), .kind = UNWIND_UNSUPPORTED);   /* the caller's sp is saved */
	EXPECT_OF(a, P(0x0c, RSP, 8, 0x90, 1, 0x08, RSP), .kind = UNWIND_UNSUPPORTED); /* or the same */
	EXPECT_OF(a, P(0x0c, RSP, 8, 0x90, 1, 0x14, RSP, 0), .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA,
		  .cfa = 1, .ra = -1); /* the CFA in other words */
}

static void test_aarch64_rules(void **state)
{
	const struct arch *a = &arch_aarch64;

	EXPECT_OF(a, P(0x0c, SP, 0), .kind = UNWIND_FROM_SP);
	EXPECT_OF(a, P(0x2d, 0x0c, SP, 32, 0x80 | FP, 4, 0x80 | LR, 3, 0x80 | X19, 2), .kind = UNWIND_FROM_SP,
		  .flags = UNWIND_RA_AT_CFA | UNWIND_FP_AT_CFA, .cfa = 4, .fp = -4, .ra = -3);
	EXPECT_OF(a, P(0x0c, FP, 16, 0x80 | FP, 2, 0x80 | LR, 1), .kind = UNWIND_FROM_FP,
		  .flags = UNWIND_RA_AT_CFA | UNWIND_FP_AT_CFA, .cfa = 2, .fp = -2, .ra = -1);
	EXPECT_OF(a, P(0x0c, SP, 0, 0x07, LR), .kind = UNWIND_END);
	/* the return address was pushed by a stub of the linkage table, and is popped as well; or it is somewhere else */
	EXPECT_OF(a, P(0x0c, SP, 0, 0x11, LR, 0x7f), .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 2, .ra = -1);
	EXPECT_OF(a, P(0x0c, SP, 32, 0x11, LR, 0x7f, 0x80 | FP, 4), .kind = UNWIND_FROM_SP,
		  .flags = UNWIND_RA_AT_CFA | UNWIND_FP_AT_CFA, .cfa = 6, .fp = -6, .ra = -1);
	EXPECT_OF(a, P(0x0c, FP, 0, 0x11, LR, 0x7f), .kind = UNWIND_FROM_FP, .flags = UNWIND_RA_AT_CFA, .ra = 1);
	EXPECT_OF(a, P(0x0c, X19, 16, 0x80 | LR, 1), .kind = UNWIND_UNSUPPORTED);
	EXPECT_OF(a, P(0x0c, SP, 16, 0x09, LR, X19), .kind = UNWIND_UNSUPPORTED);
	EXPECT_OF(a, P(0x0c, SP, 0x80, 0x80, 0x10, 0x80 | LR, 1), .kind = UNWIND_UNSUPPORTED);
	EXPECT_OF(a, P(0x0f, 3, 0x8d, 0x78, 0x06, 0x80 | LR, 1), .kind = UNWIND_UNSUPPORTED);
}

/* Registers that do not matter to the walk make no new row. */
static void test_equal_rows_are_one(void **state)
{
	struct tiny *t = tiny_create(&arch_x86_64);
	struct bpf_rows rows;

	TINY_CFI(t, 0, 16, 0x0c, RSP, 8, 0x90, 1, 0x41, 0x83, 2, 0x41, 0x8c, 3, 0x41, 0x0e, 16);
	TINY_CFI(t, 16, 16, 0x0c, RSP, 16, 0x90, 1);
	rows = build(t);
	assert_int_equal(rows.base, 0);
	assert_false(rows.cut);
	/* nothing; sp + 8; sp + 16; nothing; the entry point; nothing */
	assert_int_equal(rows.len, 6);
	EXPECT_ROW(&rows, TINY_CODE_AT + 2, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 1, .ra = -1);
	EXPECT_ROW(&rows, TINY_CODE_AT + 3, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 2, .ra = -1);
	assert_int_equal(rows.data[3].pc, TINY_CODE_AT + 32);
	EXPECT_ROW(&rows, TINY_ENTRY_AT - 1, .kind = UNWIND_NONE);
	EXPECT_ROW(&rows, TINY_ENTRY_AT, .kind = UNWIND_END);
	EXPECT_ROW(&rows, TINY_ENTRY_AT + 127, .kind = UNWIND_END);
	EXPECT_ROW(&rows, TINY_ENTRY_AT + 128, .kind = UNWIND_NONE);
	bpf_rows_deinit(&rows);
	tiny_destroy(t);
}

/* Of two records the one that starts later counts, and to its end: so finds the search for one address. */
static void test_overlaps(void **state)
{
	struct tiny *t = tiny_create(&arch_x86_64);
	struct bpf_rows rows;

	TINY_CFI(t, 32, 16, 0x0c, RSP, 24, 0x90, 1);
	TINY_CFI(t, 0, 64, 0x0c, RSP, 8, 0x90, 1, 0x44, 0x0e, 16);
	TINY_CFI(t, 32, 8, 0x0c, RSP, 32, 0x90, 1);
	rows = build(t);
	EXPECT_ROW(&rows, TINY_CODE_AT, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 1, .ra = -1);
	EXPECT_ROW(&rows, TINY_CODE_AT + 31, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 2, .ra = -1);
	EXPECT_ROW(&rows, TINY_CODE_AT + 32, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 4, .ra = -1);
	EXPECT_ROW(&rows, TINY_CODE_AT + 40, .kind = UNWIND_NONE);
	bpf_rows_deinit(&rows);
	tiny_destroy(t);
}

/* Records of code that the file does not have. */
static void test_outside_the_file(void **state)
{
	struct tiny *t = tiny_create(&arch_x86_64);
	struct bpf_rows rows;

	TINY_CFI(t, TINY_IMAGE_LEN - TINY_CODE_AT - 8, 0x7fffffff, 0x0c, RSP, 8, 0x90, 1);
	TINY_CFI(t, 0x10000000, 16, 0x0c, RSP, 8, 0x90, 1);
	rows = build(t);
	EXPECT_ROW(&rows, TINY_IMAGE_LEN - 1, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 1, .ra = -1);
	EXPECT_ROW(&rows, TINY_IMAGE_LEN, .kind = UNWIND_NONE);
	assert_int_equal(rows.data[rows.len - 1].pc, TINY_IMAGE_LEN);
	assert_false(rows.cut);
	bpf_rows_deinit(&rows);
	tiny_destroy(t);
}

/* A damaged record loses its remaining rows only. */
static void test_damaged_record(void **state)
{
	struct tiny *t = tiny_create(&arch_x86_64);
	struct bpf_rows rows;

	TINY_CFI(t, 0, 16, 0x0c, RSP, 8, 0x90, 1, 0x44, 0x3e);
	TINY_CFI(t, 16, 16, 0x0c, RSP, 16, 0x90, 1);
	rows = build(t);
	EXPECT_ROW(&rows, TINY_CODE_AT + 3, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 1, .ra = -1);
	EXPECT_ROW(&rows, TINY_CODE_AT + 4, .kind = UNWIND_NONE);
	EXPECT_ROW(&rows, TINY_CODE_AT + 16, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 2, .ra = -1);
	bpf_rows_deinit(&rows);
	tiny_destroy(t);
}

/* Returned to at its first byte, and so looked up one before; with CFI, or in a gap of any size. */
static void test_trampolines(void **state)
{
	const struct arch *archs[] = {&arch_x86_64, &arch_aarch64};

	for (unsigned i = 0; i < 2; i++) {
		const struct arch *a = archs[i];
		struct tiny *t = tiny_create(a);
		uint8_t len = a->sigreturn_len[0];
		struct bpf_rows rows;
		size_t cie = cfimake_begin(&t->eh_frame);

		cfimake_uint(&t->eh_frame, 0, 4);
		CFIMAKE(&t->eh_frame, 1, 'z', 'R', 'S', 0, 1, 0x78, a->dwarf_ra, 1, 0x1b);
		cfimake_end(&t->eh_frame, cie);
		/* marked as a signal's; marked, but without the code; without CFI right behind what has some */
		CFIMAKE_FDE(&t->eh_frame, cie, TINY_CODE_AT + 0xf, 1 + len, 0x0c, a->dwarf_sp, 16, 0x80 | a->dwarf_ra,
			    1);
		CFIMAKE_FDE(&t->eh_frame, cie, TINY_CODE_AT + 0x40, 16, 0x0c, a->dwarf_sp, 16, 0x80 | a->dwarf_ra, 1);
		TINY_CFI(t, 0x80, 16, 0x0c, a->dwarf_sp, 16, 0x80 | a->dwarf_ra, 1);
		TINY_CFI(t, 0xa0, 16, 0x0c, a->dwarf_sp, 16, 0x80 | a->dwarf_ra, 1);
		tiny_code(t, TINY_CODE + 0x10, a->sigreturn_code[0], len);
		tiny_code(t, TINY_CODE + 0x90, a->sigreturn_code[0], len);
		rows = build(t);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0xe, .kind = UNWIND_NONE);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0xf, .kind = UNWIND_SIGNAL);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0x10, .kind = UNWIND_SIGNAL);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0xf + len, .kind = UNWIND_SIGNAL);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0x10 + len, .kind = UNWIND_NONE);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0x40, .kind = UNWIND_UNSUPPORTED);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0x8e, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 2,
			   .ra = -1);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0x8f, .kind = UNWIND_SIGNAL);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0x90 + len, .kind = UNWIND_NONE);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0xa0, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 2,
			   .ra = -1);
		bpf_rows_deinit(&rows);
		tiny_destroy(t);
	}
}

/* Where a thread's function returns to, and the thread is ended: nothing has called that. */
static void test_thread_end(void **state)
{
	/* call *%r9; mov %eax, %edi; mov $60, %al; syscall, and blr x1; mov x8, #93; svc #0 */
	static const uint8_t x86_64[] = {0x41, 0xff, 0xd1, 0x89, 0xc7, 0xb0, 60, 0x0f, 0x05};
	static const uint8_t aarch64[] = {0x20, 0x00, 0x3f, 0xd6, 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
	const struct {
		const struct arch *arch;
		const uint8_t *code;
		size_t len, call, number; /* bytes of the call, and where the system call's number is */
	} archs[] = {{&arch_x86_64, x86_64, sizeof(x86_64), 3, 6}, {&arch_aarch64, aarch64, sizeof(aarch64), 4, 5}};

	for (unsigned i = 0; i < 2; i++) {
		const struct arch *a = archs[i].arch;
		struct tiny *t = tiny_create(a);
		size_t call = archs[i].call, len = archs[i].len;
		uint8_t other[16];
		struct bpf_rows rows;

		memcpy(other, archs[i].code, len);
		other[archs[i].number]++;
		TINY_CFI(t, 0, 16, 0x0c, a->dwarf_sp, 16, 0x80 | a->dwarf_ra, 1);
		TINY_CFI(t, 0x40, 16, 0x0c, a->dwarf_sp, 16, 0x80 | a->dwarf_ra, 1);
		tiny_code(t, TINY_CODE + 0x20, archs[i].code, len);
		tiny_code(t, TINY_CODE + 0x40, archs[i].code, len); /* has CFI */
		tiny_code(t, TINY_CODE + 0x60, other, len);         /* another system call */
		tiny_code(t, TINY_CODE + 0x80, archs[i].code + call, len - call); /* not called from here */
		rows = build(t);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0x20 + call - 2, .kind = UNWIND_NONE);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0x20 + call - 1, .kind = UNWIND_END);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0x20 + call, .kind = UNWIND_NONE);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0x40 + call - 1, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA,
			   .cfa = 2, .ra = -1);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0x60 + call - 1, .kind = UNWIND_NONE);
		EXPECT_ROW(&rows, TINY_CODE_AT + 0x80 - 1, .kind = UNWIND_NONE);
		bpf_rows_deinit(&rows);
		tiny_destroy(t);
	}
}

/* A file of sections: TEXT_LEN bytes of code, and these. */
static struct bpf_rows build_sections(const struct cfimake *eh_frame, const struct cfimake *debug_frame)
{
	static const uint8_t text[TEXT_LEN];
	Elf64_Shdr shdr = {.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = TEXT};
	struct image *image;
	struct elfmake e;
	struct bpf_rows rows;

	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".text", shdr, text, sizeof(text));
	shdr.sh_flags = SHF_ALLOC;
	if (eh_frame) {
		shdr.sh_addr = eh_frame->vaddr;
		elfmake_section(&e, ".eh_frame", shdr, eh_frame->data, eh_frame->len);
	}
	if (debug_frame) {
		shdr = (Elf64_Shdr){.sh_type = SHT_PROGBITS};
		elfmake_section(&e, ".debug_frame", shdr, debug_frame->data, debug_frame->len);
	}
	image = elfmake_image(&e);
	assert_int_equal(bpf_rows_build(image, &arch_x86_64, NULL, &rows), 0);
	assert_int_equal(rows.base, TEXT);
	image_destroy(image);
	elfmake_deinit(&e);
	return rows;
}

/* What aligns the next function belongs to the one before it; a gap in which one could be does not. */
static void test_padding(void **state)
{
	struct cfimake eh = {.vaddr = 0x1000};
	size_t cie = cfimake_cie(&eh, 16, 0x1b);
	struct bpf_rows rows;

	CFIMAKE_FDE(&eh, cie, TEXT + 1, 4, 0x0c, RSP, 8, 0x90, 1);
	CFIMAKE_FDE(&eh, cie, TEXT + 16, 4, 0x0c, RSP, 16, 0x90, 1);
	CFIMAKE_FDE(&eh, cie, TEXT + 24, 8, 0x0c, RSP, 24, 0x90, 1);
	CFIMAKE_FDE(&eh, cie, TEXT + 48, 8, 0x0c, RSP, 32, 0x90, 1);
	rows = build_sections(&eh, NULL);
	EXPECT_ROW(&rows, TEXT, .kind = UNWIND_NONE);
	EXPECT_ROW(&rows, TEXT + 15, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 1, .ra = -1);
	EXPECT_ROW(&rows, TEXT + 20, .kind = UNWIND_NONE); /* what follows is not aligned */
	EXPECT_ROW(&rows, TEXT + 24, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 3, .ra = -1);
	EXPECT_ROW(&rows, TEXT + 32, .kind = UNWIND_NONE); /* 16 bytes */
	EXPECT_ROW(&rows, TEXT + 48, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 4, .ra = -1);
	EXPECT_ROW(&rows, TEXT + 56, .kind = UNWIND_NONE);
	bpf_rows_deinit(&rows);
}

static void put_debug_fde(struct cfimake *m, uint64_t start, uint64_t len, uint8_t cfa)
{
	size_t at = cfimake_begin(m);

	cfimake_uint(m, 0, 4); /* its CIE */
	cfimake_uint(m, start, 8);
	cfimake_uint(m, len, 8);
	CFIMAKE(m, 0x0c, RSP, cfa, 0x90, 1);
	cfimake_end(m, at);
}

/* .eh_frame comes first; what it leaves out is in .debug_frame. */
static void test_debug_frame(void **state)
{
	struct cfimake eh = {.vaddr = 0x1000}, debug = {0};
	size_t cie = cfimake_begin(&debug);
	struct bpf_rows rows;

	cfimake_uint(&debug, UINT32_MAX, 4);
	CFIMAKE(&debug, 1, 0, 1, 0x78, 16);
	cfimake_end(&debug, cie);
	put_debug_fde(&debug, TEXT + 0x100, 0x100, 8);
	put_debug_fde(&debug, TEXT + 0x400, 0x100, 16);
	rows = build_sections(NULL, &debug);
	EXPECT_ROW(&rows, TEXT + 0xff, .kind = UNWIND_NONE);
	EXPECT_ROW(&rows, TEXT + 0x100, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 1, .ra = -1);
	EXPECT_ROW(&rows, TEXT + 0x200, .kind = UNWIND_NONE);
	EXPECT_ROW(&rows, TEXT + 0x4ff, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 2, .ra = -1);
	EXPECT_ROW(&rows, TEXT + 0x500, .kind = UNWIND_NONE);
	bpf_rows_deinit(&rows);

	cie = cfimake_cie(&eh, 16, 0x1b);
	CFIMAKE_FDE(&eh, cie, TEXT + 0x180, 0x100, 0x0c, RSP, 24, 0x90, 1);
	rows = build_sections(&eh, &debug);
	EXPECT_ROW(&rows, TEXT + 0x17f, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 1, .ra = -1);
	EXPECT_ROW(&rows, TEXT + 0x180, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 3, .ra = -1);
	EXPECT_ROW(&rows, TEXT + 0x27f, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 3, .ra = -1);
	EXPECT_ROW(&rows, TEXT + 0x280, .kind = UNWIND_NONE);
	EXPECT_ROW(&rows, TEXT + 0x400, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 2, .ra = -1);
	bpf_rows_deinit(&rows);
}

static void test_without_cfi(void **state)
{
	struct bpf_rows rows = build_sections(NULL, NULL);

	assert_int_equal(rows.len, 1);
	EXPECT_ROW(&rows, TEXT + 8, .kind = UNWIND_NONE);
	bpf_rows_deinit(&rows);
}

/* More rows than the table may have: code of which every byte changes the CFA. */
static void test_full_table(void **state)
{
	const uint64_t bytes = BPF_ROWS_MAX + 100;
	const unsigned functions = 16, each = ((unsigned)(bytes / functions) + 2) & ~1U;
	Elf64_Shdr shdr = {.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = TEXT};
	uint8_t *text = calloc(1, (size_t)functions * each), *eh = malloc((size_t)functions * (3 * each + 64));
	size_t len;
	struct cfimake head = {.vaddr = 0};
	struct image *image;
	struct bpf_rows rows;
	struct elfmake e;

	cfimake_cie(&head, 16, 0); /* absolute addresses */
	memcpy(eh, head.data, head.len);
	len = head.len;
	for (unsigned f = 0; f < functions; f++) {
		uint32_t size = 4 + 16 + 1 + 5 + 3 * each, back = (uint32_t)(len + 4);
		uint64_t start = TEXT + (uint64_t)f * each, range = each;
		static const uint8_t program[] = {0, 0x0c, RSP, 8, 0x90, 1};

		memcpy(eh + len, &size, 4);
		memcpy(eh + len + 4, &back, 4);
		memcpy(eh + len + 8, &start, 8);
		memcpy(eh + len + 16, &range, 8);
		memcpy(eh + len + 24, program, sizeof(program));
		len += 24 + sizeof(program);
		for (unsigned i = 0; i < each; i++, len += 3)
			memcpy(eh + len, (uint8_t[]){0x0e, i % 2 ? 8 : 16, 0x41}, 3);
	}
	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".text", shdr, text, (size_t)functions * each);
	shdr = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC};
	elfmake_section(&e, ".eh_frame", shdr, eh, len);
	image = elfmake_image(&e);
	assert_int_equal(bpf_rows_build(image, &arch_x86_64, NULL, &rows), 0);
	assert_true(rows.cut);
	assert_int_equal(rows.len, BPF_ROWS_MAX);
	assert_int_equal(rows.data[rows.len - 1].kind, UNWIND_NONE);
	assert_int_equal(rows.data[rows.len - 1].pc, BPF_ROWS_MAX - 1);
	assert_int_equal(rows.data[rows.len - 2].kind, UNWIND_FROM_SP);
	bpf_rows_deinit(&rows);
	image_destroy(image);
	elfmake_deinit(&e);
	free(eh);
	free(text);
}

/* A long CIE, run again for each of many records, ends the reading before it has taken hours. */
static void test_endless_cie(void **state)
{
	enum { NOPS = 10000, RECORDS = 1000, RECORD_LEN = 28 };
	const uint32_t cie_len = 13 + NOPS, fde_len = RECORD_LEN - 4;
	Elf64_Shdr shdr = {.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = TEXT};
	static const uint8_t text[TEXT_LEN], cie[] = {0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0};
	static uint8_t eh[4 + 13 + NOPS + RECORDS * RECORD_LEN];
	struct image *image;
	struct bpf_rows rows;
	struct elfmake e;

	memcpy(eh, &cie_len, 4);
	memcpy(eh + 4, cie, sizeof(cie));
	for (uint32_t i = 0; i < RECORDS; i++) {
		uint32_t at = 4 + cie_len + i * RECORD_LEN, back = at + 4;
		uint64_t start = TEXT + i * 16, len = 16;

		memcpy(eh + at, &fde_len, 4);
		memcpy(eh + at + 4, &back, 4);
		memcpy(eh + at + 8, &start, 8);
		memcpy(eh + at + 16, &len, 8);
		memcpy(eh + at + 24, (uint8_t[]){0, 0x0c, RSP, (uint8_t)(8 + i % 2 * 8)}, 4);
	}
	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".text", shdr, text, sizeof(text));
	shdr = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC};
	elfmake_section(&e, ".eh_frame", shdr, eh, sizeof(eh));
	image = elfmake_image(&e);
	assert_int_equal(bpf_rows_build(image, &arch_x86_64, NULL, &rows), 0);
	assert_int_equal(at(&rows, TEXT).kind, UNWIND_UNSUPPORTED); /* it tells of no return address */
	assert_int_equal(at(&rows, TEXT + 16 * RECORDS - 1).kind, UNWIND_NONE);
	bpf_rows_deinit(&rows);
	image_destroy(image);
	elfmake_deinit(&e);
}

static void test_refused_files(void **state)
{
	struct tiny *t = tiny_create(&arch_x86_64);
	struct elfmake e;
	struct image *image;
	struct bpf_rows rows;
	struct err err;
	uint64_t vaddr;

	tiny_load(t);
	assert_int_equal(bpf_rows_build(modules_find(t->target->modules, TINY_CODE, &vaddr)->image, &arch_aarch64, &err, &rows),
			 -ENOEXEC);
	assert_string_equal(err.msg, "its code is not for aarch64");
	assert_int_equal(rows.len, 0);
	tiny_destroy(t);

	elfmake_init(&e, EM_X86_64);
	image = elfmake_image(&e);
	assert_int_equal(bpf_rows_build(image, &arch_x86_64, &err, &rows), -ENOENT);
	assert_string_equal(err.msg, "it has no code");
	image_destroy(image);
	elfmake_deinit(&e);
}

/* The rows of a Go program whose second function has this name, and this code. */
static struct bpf_rows build_go(const char *name, uint8_t flags, int32_t frame, const uint8_t *code, size_t len)
{
	struct gomake *g = calloc(1, sizeof(*g));
	struct scratch dir;
	struct image *image;
	struct bpf_rows rows;

	assert_non_null(g);
	*g = (struct gomake){.release = 20,
			     .ptr_size = 8,
			     .quantum = 1,
			     .sections = true,
			     .code = true,
			     .leaf = name,
			     .leaf_frame = frame,
			     .leaf_flags = flags};
	gomake(g);
	if (len)
		memcpy(g->data + GOMAKE_CODE + GOMAKE_LEAF, code, len);
	scratch_init(&dir);
	scratch_write(&dir, "go", g->data, sizeof(g->data));
	image = scratch_image(&dir, "go");
	assert_int_equal(bpf_rows_build(image, &arch_x86_64, NULL, &rows), 0);
	image_destroy(image);
	scratch_deinit(&dir);
	free(g);
	return rows;
}

static void test_go(void **state)
{
	struct bpf_rows rows = build_go("runtime.goexit", GO_FUNC_TOP, 0, NULL, 0);

	EXPECT_ROW(&rows, GOMAKE_TEXT, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 1, .ra = -1);
	EXPECT_ROW(&rows, GOMAKE_TEXT + GOMAKE_FRAME_START, .kind = UNWIND_FROM_SP,
		   .flags = UNWIND_RA_AT_CFA | UNWIND_FP_AT_CFA, .cfa = GOMAKE_FRAME / 8 + 1, .ra = -1, .fp = -2);
	EXPECT_ROW(&rows, GOMAKE_TEXT + GOMAKE_FRAME_END, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA, .cfa = 1,
		   .ra = -1);
	EXPECT_ROW(&rows, GOMAKE_TEXT + GOMAKE_LEAF, .kind = UNWIND_END);
	bpf_rows_deinit(&rows);
}

/* Only behind its call has the function certainly changed stacks: that is where the callee's return address leads. */
static void test_go_switch(void **state)
{
	static const uint8_t code[] = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0, 0x90, 0xc3};
	struct bpf_rows rows = build_go("runtime.systemstack", GO_FUNC_WRITES_SP, 0, code, sizeof(code));
	const uint64_t call = GOMAKE_TEXT + GOMAKE_LEAF + 8;

	EXPECT_ROW(&rows, call, .kind = UNWIND_UNSUPPORTED);
	EXPECT_ROW(&rows, call + 4, .kind = UNWIND_GO_SYSTEM, .flags = UNWIND_RA_AT_CFA, .cfa = 1, .ra = -1);
	EXPECT_ROW(&rows, call + 5, .kind = UNWIND_UNSUPPORTED);
	bpf_rows_deinit(&rows);

	rows = build_go("runtime.asmcgocall", GO_FUNC_WRITES_SP, 8, code, sizeof(code));
	EXPECT_ROW(&rows, call, .kind = UNWIND_GO_FRAME, .flags = UNWIND_RA_AT_CFA | UNWIND_FP_AT_CFA, .cfa = 2,
		   .ra = -1, .fp = -2);
	EXPECT_ROW(&rows, call + 4, .kind = UNWIND_GO_C, .flags = UNWIND_RA_AT_CFA | UNWIND_FP_AT_CFA, .cfa = 2,
		   .ra = -1, .fp = -2);
	bpf_rows_deinit(&rows);

	rows = build_go("runtime.morestack", GO_FUNC_WRITES_SP, 0, code, sizeof(code));
	EXPECT_ROW(&rows, call + 4, .kind = UNWIND_GO_MORESTACK, .flags = UNWIND_RA_AT_CFA, .cfa = 1, .ra = -1);
	bpf_rows_deinit(&rows);

	rows = build_go("runtime.mcall", GO_FUNC_WRITES_SP, 0, code, sizeof(code));
	EXPECT_ROW(&rows, call, .kind = UNWIND_UNSUPPORTED);
	EXPECT_ROW(&rows, call + 4, .kind = UNWIND_END);
	bpf_rows_deinit(&rows);

	rows = build_go("runtime.cgocallback", GO_FUNC_WRITES_SP, 0, code, sizeof(code));
	EXPECT_ROW(&rows, call + 4, .kind = UNWIND_GO_CALLBACK, .flags = UNWIND_RA_AT_CFA, .cfa = 1, .ra = -1);
	bpf_rows_deinit(&rows);
}

/* What C's registers are kept in is no frame of Go's: its code, this of Go 1.17 and later, tells what is where. */
static void test_go_called_by_c(void **state)
{
	static const uint8_t code[] = {
		0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, /* where it saves them */
		0xe8, 0, 0, 0, 0,
		0x48, 0x83, 0xc4, 0x18,       /* add $0x18, %rsp */
		0x48, 0x8b, 0x1c, 0x24,       /* mov (%rsp), %rbx */
		0x4c, 0x8b, 0x64, 0x24, 0x08, /* mov 8(%rsp), %r12 */
		0x48, 0x8b, 0x6c, 0x24, 0x28, /* mov 0x28(%rsp), %rbp */
		0x48, 0x83, 0xc4, 0x30,       /* add $0x30, %rsp */
		0xc3,
	};
	struct bpf_rows rows = build_go("crosscall2", 0, 0x10, code, sizeof(code));
	const uint64_t call = GOMAKE_TEXT + GOMAKE_LEAF + 8;

	EXPECT_ROW(&rows, call + 4, .kind = UNWIND_FROM_SP, .flags = UNWIND_RA_AT_CFA | UNWIND_FP_AT_CFA, .cfa = 0x50 / 8,
		   .ra = -1, .fp = -2);
	bpf_rows_deinit(&rows);
}

/* To Go's tables it is a function like any other. */
static void test_go_trampoline(void **state)
{
	static const uint8_t code[] = {0x90, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	struct bpf_rows rows = build_go("runtime.sigreturn__sigaction", 0, 0, code, sizeof(code));

	EXPECT_ROW(&rows, GOMAKE_TEXT + GOMAKE_LEAF, .kind = UNWIND_SIGNAL);
	EXPECT_ROW(&rows, GOMAKE_TEXT + GOMAKE_LEAF + 1, .kind = UNWIND_SIGNAL);
	bpf_rows_deinit(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_64_rules),       cmocka_unit_test(test_x86_64_plt),
		cmocka_unit_test(test_x86_64_kept_cfa),    cmocka_unit_test(test_x86_64_large_frames),
		cmocka_unit_test(test_x86_64_unsupported), cmocka_unit_test(test_aarch64_rules),
		cmocka_unit_test(test_equal_rows_are_one), cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_outside_the_file),   cmocka_unit_test(test_damaged_record),
		cmocka_unit_test(test_trampolines),        cmocka_unit_test(test_padding),
		cmocka_unit_test(test_debug_frame),        cmocka_unit_test(test_without_cfi),
		cmocka_unit_test(test_full_table),         cmocka_unit_test(test_endless_cie),
		cmocka_unit_test(test_refused_files),      cmocka_unit_test(test_thread_end),
		cmocka_unit_test(test_go),                 cmocka_unit_test(test_go_switch),
		cmocka_unit_test(test_go_called_by_c),
		cmocka_unit_test(test_go_trampoline),
	};

	return cmocka_run_group_tests_name("bpf_rows", tests, NULL, NULL);
}
