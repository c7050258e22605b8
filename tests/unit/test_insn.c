/* SPDX-License-Identifier: MIT */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "unwind/insn.h"
#include "cmocka_all.h"

enum {
	CODE_AT = 0x1000,
	IMAGE_LEN = 0x2000,
	RBX = 3,
	RBP = 6,
	RSP = 7,
	R12 = 12,
	RA = 16,
	X19 = 19,
	FP = 29,
	LR = 30,
	SP = 31,
};

static bool follows(const struct arch *arch, const uint8_t *code, size_t len, uint64_t *target)
{
	return insn_follows_call(arch, code, len, 0x401000, target);
}

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

static void test_x86_64_calls(void **state)
{
	uint64_t target;

	assert_true(follows(&arch_x86_64, BYTES(0, 0, 0xe8, 0xfb, 0xff, 0xff, 0xff), &target));
	assert_int_equal(target, 0x401000 - 5);
	assert_true(follows(&arch_x86_64, BYTES(0, 0, 0, 0, 0, 0xff, 0xd0), &target)); /* call *%rax */
	assert_int_equal(target, 0);
	assert_true(follows(&arch_x86_64, BYTES(0, 0, 0, 0, 0x41, 0xff, 0xd1), &target));  /* *%r9 */
	assert_true(follows(&arch_x86_64, BYTES(0, 0, 0, 0, 0, 0xff, 0x13), &target));     /* *(%rbx) */
	assert_true(follows(&arch_x86_64, BYTES(0, 0, 0, 0, 0xff, 0x50, 8), &target));     /* *8(%rax) */
	assert_true(follows(&arch_x86_64, BYTES(0, 0, 0, 0xff, 0x54, 0x24, 8), &target));  /* *8(%rsp) */
	assert_true(follows(&arch_x86_64, BYTES(0, 0, 0, 0, 0xff, 0x14, 0xc7), &target));  /* *(%rdi,%rax,8) */
	assert_true(follows(&arch_x86_64, BYTES(0, 0xff, 0x15, 0, 1, 0, 0), &target));     /* *x(%rip) */
	assert_true(follows(&arch_x86_64, BYTES(0, 0xff, 0x90, 0, 1, 0, 0), &target));     /* *256(%rax) */
	assert_true(follows(&arch_x86_64, BYTES(0xff, 0x94, 0xc7, 0, 1, 0, 0), &target));  /* *256(%rdi,%rax,8) */
	assert_false(follows(&arch_x86_64, BYTES(0, 0, 0, 0, 0, 0xff, 0xe0), &target));    /* jmp *%rax */
	assert_false(follows(&arch_x86_64, BYTES(0, 0, 0, 0, 0xff, 0xd0, 0x90), &target)); /* not at the end */
	assert_false(follows(&arch_x86_64, BYTES(0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90), &target));
	assert_false(follows(&arch_x86_64, BYTES(0x90, 0x90), &target));
}

static void test_aarch64_calls(void **state)
{
	uint64_t target;

	assert_true(follows(&arch_aarch64, BYTES(0, 0, 0, 0xff, 0xff, 0xff, 0x97), &target)); /* bl -4 */
	assert_int_equal(target, 0x401000 - 8);
	assert_true(follows(&arch_aarch64, BYTES(0x00, 0x00, 0x3f, 0xd6), &target)); /* blr x0 */
	assert_int_equal(target, 0);
	assert_true(follows(&arch_aarch64, BYTES(0x1f, 0x08, 0x3f, 0xd6), &target));  /* blraaz x0 */
	assert_true(follows(&arch_aarch64, BYTES(0x01, 0x08, 0x3f, 0xd7), &target));  /* blraa x0, x1 */
	assert_false(follows(&arch_aarch64, BYTES(0x00, 0x00, 0x1f, 0xd6), &target)); /* br x0 */
	assert_false(follows(&arch_aarch64, BYTES(0xff, 0xff, 0xff, 0x17), &target)); /* b */
	assert_false(follows(&arch_aarch64, BYTES(0x3f, 0xd6), &target));
	assert_false(insn_follows_call(&arch_aarch64, BYTES(0x00, 0x00, 0x3f, 0xd6), 0x401002, &target));
}

/* As V8 11.3 enters its interpreter, and what is not that. */
static void test_aarch64_jumps(void **state)
{
	uint32_t code[] = {0xd503201f, 0xb89dc3b3, 0x100000de /* adr x30, +24 */, 0x38736a97,
			   0xd37df2e1, 0xf8616aa2, 0xaa0203f1, 0xd61f0220 /* br x17 */};

	_Static_assert(sizeof(code) == INSN_JUMP_BYTES, "");
	assert_true(insn_follows_jump(&arch_aarch64, (const uint8_t *)code, 0x401000));
	assert_false(insn_follows_jump(&arch_x86_64, (const uint8_t *)code, 0x401000));
	code[2] = 0x100000be; /* to the br */
	assert_false(insn_follows_jump(&arch_aarch64, (const uint8_t *)code, 0x401000));
	code[2] = 0x100000dd; /* another register */
	assert_false(insn_follows_jump(&arch_aarch64, (const uint8_t *)code, 0x401000));
	code[2] = 0x100000de;
	code[7] = 0xd65f03c0; /* ret */
	assert_false(insn_follows_jump(&arch_aarch64, (const uint8_t *)code, 0x401000));
}

/* Reads the row of code that starts at CODE_AT of an image made for it. */
static bool read_row(const struct arch *arch, const void *code, size_t len, struct cfi_row *row)
{
	static uint8_t bytes[IMAGE_LEN];
	Elf64_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = arch->elf_machine,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(ehdr),
		.e_ehsize = sizeof(ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	Elf64_Phdr phdr = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = CODE_AT + len, .p_memsz = IMAGE_LEN};
	struct image *image;
	bool found;

	memcpy(bytes, &ehdr, sizeof(ehdr));
	memcpy(bytes + sizeof(ehdr), &phdr, sizeof(phdr));
	memcpy(bytes + CODE_AT, code, len);
	assert_int_equal(image_open_memory(bytes, sizeof(bytes), NULL, &image), 0);
	found = insn_read_row(image, arch, NULL, CODE_AT, row);
	image_destroy(image);
	return found;
}

#define X86(row, ...)     read_row(&arch_x86_64, BYTES(__VA_ARGS__), row)
#define WORDS(...)        ((const uint32_t[]){__VA_ARGS__}), sizeof((const uint32_t[]){__VA_ARGS__})
#define AARCH64(row, ...) read_row(&arch_aarch64, WORDS(__VA_ARGS__), row)

static void assert_cfa(const struct cfi_row *row, uint32_t reg, int64_t offset)
{
	assert_int_equal(row->cfa.kind, CFI_REGISTER_OFFSET);
	assert_int_equal(row->cfa.reg, reg);
	assert_int_equal(row->cfa.offset, offset);
}

static void assert_saved(const struct cfi_row *row, unsigned reg, int64_t offset)
{
	assert_int_equal(row->regs[reg].kind, CFI_AT_CFA_OFFSET);
	assert_int_equal(row->regs[reg].offset, offset);
}

static void test_x86_64_rows(void **state)
{
	struct cfi_row row;

	assert_true(X86(&row, 0xc3));
	assert_cfa(&row, RSP, 8);
	assert_saved(&row, RA, -8);
	assert_true(X86(&row, 0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0x41, 0x5c, 0xf3, 0xc3)); /* add; pops; rep ret */
	assert_cfa(&row, RSP, 0x18 + 24 + 8);
	assert_saved(&row, RBX, -32);
	assert_saved(&row, RBP, -24);
	assert_saved(&row, R12, -16);
	assert_true(X86(&row, 0xc9, 0xc3)); /* leave; ret */
	assert_cfa(&row, RBP, 16);
	assert_saved(&row, RBP, -16);
	assert_true(X86(&row, 0x48, 0x8d, 0x65, 0xf0, 0x5b, 0x41, 0x5c, 0x5d, 0xc3)); /* lea -16(%rbp), %rsp; pops */
	assert_cfa(&row, RBP, 16);
	assert_saved(&row, RBX, -32);
	/* at the start of a function: what it pushes itself is not saved yet */
	assert_true(X86(&row, 0x53, 0x48, 0x83, 0xec, 0x10, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3));
	assert_cfa(&row, RSP, 8);
	assert_int_equal(row.regs[RBX].kind, CFI_UNSPECIFIED);
	/* a frame pointer that is set on the way is not the one at the start; of other values nothing is known */
	assert_true(X86(&row, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xc9, 0xc3));
	assert_cfa(&row, RSP, 8);
	assert_int_equal(row.regs[RBP].kind, CFI_UNSPECIFIED);
	assert_true(X86(&row, 0x55, 0x48, 0x8d, 0x6c, 0x24, 0x08, 0x48, 0x8d, 0x65, 0xf8, 0x5d, 0xc3));
	assert_cfa(&row, RSP, 8);
	assert_false(X86(&row, 0x48, 0x89, 0xc5, 0xc9, 0xc3)); /* mov %rax, %rbp; leave */
	assert_false(X86(&row, 0x5d, 0xc9, 0xc3));
	/* registers restored by moves, then a tail call into code that pushes and pops the same */
	assert_true(
		X86(&row, 0x48, 0x8b, 0x5c, 0x24, 0x08, 0x48, 0x83, 0xc4, 0x10, 0xeb, 0x01, 0xf4, 0x53, 0x5b, 0xc3));
	assert_cfa(&row, RSP, 0x18);
	assert_saved(&row, RBX, -16);
}

/* Code made at run time: nothing but the bytes from the return address on. */
static void test_straight(void **state)
{
	static const uint8_t trampoline[] = {0x48, 0x83, 0xc4, 0x08, 0xc3}; /* add $8,%rsp; ret */
	static const uint8_t record[] = {0x5d, 0xc3};			     /* pop %rbp; ret */
	static const uint8_t branch[] = {0x75, 0x00, 0xc3};		     /* jne to the next; ret */
	static const uint8_t jump[] = {0xeb, 0x00, 0xc3};		     /* jmp to the next; ret */
	static const uint8_t pair[] = {0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6}; /* ldp x29,x30,[sp],#16; ret */
	struct cfi_row row;

	assert_true(insn_read_straight(&arch_x86_64, trampoline, sizeof(trampoline), CODE_AT, &row));
	assert_int_equal(row.cfa.reg, arch_x86_64.dwarf_sp);
	assert_int_equal(row.cfa.offset, 16);
	assert_int_equal(row.regs[arch_x86_64.dwarf_fp].kind, CFI_UNSPECIFIED);
	assert_true(insn_read_straight(&arch_x86_64, record, sizeof(record), CODE_AT, &row));
	assert_int_equal(row.cfa.offset, 16);
	assert_int_equal(row.regs[arch_x86_64.dwarf_fp].offset, -16);
	assert_true(insn_read_straight(&arch_aarch64, pair, sizeof(pair), CODE_AT, &row));
	assert_int_equal(row.cfa.offset, 16);
	assert_int_equal(row.regs[arch_aarch64.dwarf_ra].offset, -8);

	assert_false(insn_read_straight(&arch_x86_64, branch, sizeof(branch), CODE_AT, &row));
	assert_false(insn_read_straight(&arch_x86_64, jump, sizeof(jump), CODE_AT, &row));
	for (size_t len = 0; len < sizeof(trampoline); len++)
		assert_false(insn_read_straight(&arch_x86_64, trampoline, len, CODE_AT, &row));
}

static void test_x86_64_flow(void **state)
{
	struct cfi_row row;

	/* the way on ends in a trap, the branch returns */
	assert_true(X86(&row, 0x74, 0x02, 0x0f, 0x0b, 0x5b, 0xc3));
	assert_cfa(&row, RSP, 16);
	/* a loop that branches to itself, then returns */
	assert_true(X86(&row, 0x75, 0xfe, 0xc3));
	/* no return: an endless loop, a computed jump, a halt, the end of the bytes */
	assert_false(X86(&row, 0xeb, 0xfe));
	assert_false(X86(&row, 0xff, 0xe0));
	assert_false(X86(&row, 0xf4));
	assert_false(X86(&row, 0x90, 0x90));
	assert_false(X86(&row, 0xe8, 0, 0));
	/* a call that does not return, then padding or another function */
	assert_false(X86(&row, 0xe8, 0, 0, 0, 0, 0x66, 0x90, 0x48, 0x83, 0xec, 8, 0x48, 0x83, 0xc4, 8, 0xc3));
	assert_false(X86(&row, 0xe8, 0, 0, 0, 0, 0xf3, 0x0f, 0x1e, 0xfa, 0xc3));
	assert_false(X86(&row, 0xe8, 0, 0, 0, 0, 0x53, 0x5b, 0xc3));
	/* a stack pointer that is computed */
	assert_false(X86(&row, 0x48, 0x83, 0xe4, 0xf0, 0xc3));
	assert_false(X86(&row, 0x48, 0x89, 0xc4, 0xc3));
	/* bytes that are no instruction */
	assert_false(X86(&row, 0x06, 0xc3));
}

/* Lengths of all kinds of encodings: the return must be found right behind each. */
static void test_x86_64_lengths(void **state)
{
	static const struct {
		uint8_t len;
		uint8_t bytes[15];
	} insns[] = {
		{2, {0x31, 0xc0}},                                                  /* xor eax, eax */
		{9, {0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}},                 /* mov fs:0x28, rax */
		{7, {0x48, 0x8d, 0x35, 0x97, 0xef, 0xbf, 0xff}},                    /* lea x(rip), rsi */
		{10, {0x48, 0xb8, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3}}, /* movabs */
		{5, {0xb8, 0xc3, 0xc3, 0xc3, 0xc3}},                                /* mov imm32, eax */
		{4, {0x66, 0xb8, 0xc3, 0xc3}},                                      /* mov imm16, ax */
		{10, {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}},                /* nopw */
		{5, {0xf0, 0x0f, 0xb1, 0x57, 0x10}},                                /* lock cmpxchg */
		{4, {0x66, 0x0f, 0x6f, 0xc3}},                                      /* movdqa */
		{6, {0x66, 0x0f, 0x3a, 0x0f, 0xc3, 0xc3}},                          /* palignr */
		{5, {0x66, 0x0f, 0x38, 0x00, 0xc3}},                                /* pshufb */
		{3, {0xc5, 0xf8, 0x77}},                                            /* vzeroupper */
		{5, {0xc4, 0xe2, 0x7d, 0x58, 0xc3}},                                /* vpbroadcastd */
		{6, {0xc4, 0xe3, 0x7d, 0x39, 0xc3, 0xc3}},                          /* vextracti128 */
		{6, {0x62, 0xf1, 0x7d, 0x48, 0x6f, 0xc3}},                          /* vmovdqa32 */
		{3, {0xf6, 0xc3, 0xc3}},                                            /* test imm8 */
		{2, {0xf6, 0xd3}},                                                  /* not */
		{6, {0xf7, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3}},                          /* test imm32 */
		{7, {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0}},                             /* mov imm32, rax */
		{4, {0x48, 0x0f, 0xba, 0xe3}},                               /* bt, without its imm8: see below */
		{9, {0x48, 0xa1, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3}}, /* movabs, without its last byte */
		{2, {0x0f, 0x05}},                                           /* syscall */
		{2, {0xf3, 0xa4}},                                           /* rep movsb */
	};

	for (size_t i = 0; i < sizeof(insns) / sizeof(*insns); i++) {
		uint8_t code[20];
		struct cfi_row row;
		size_t len = insns[i].len;

		memcpy(code, insns[i].bytes, len);
		code[len++] = 0x5b; /* pop rbx: swallowed by the two that lack a byte */
		code[len++] = 0xc3;
		assert_true(read_row(&arch_x86_64, code, len, &row));
		assert_int_equal(row.cfa.offset, insns[i].bytes[1] == 0xa1 || insns[i].bytes[2] == 0xba ? 8 : 16);
	}
}

static void test_aarch64_rows(void **state)
{
	struct cfi_row row;

	assert_true(AARCH64(&row, 0xd65f03c0)); /* ret */
	assert_cfa(&row, SP, 0);
	assert_int_equal(row.regs[LR].kind, CFI_UNSPECIFIED);
	assert_true(AARCH64(&row, 0xa8c27bfd, 0xd65f03c0)); /* ldp x29, x30, [sp], #32; ret */
	assert_cfa(&row, SP, 32);
	assert_saved(&row, FP, -32);
	assert_saved(&row, LR, -24);
	/* ldr x19, [sp, #16]; ldp x29, x30, [sp], #32; autiasp; ret */
	assert_true(AARCH64(&row, 0xf9400bf3, 0xa8c27bfd, 0xd50323bf, 0xd65f03c0));
	assert_saved(&row, X19, -16);
	/* mov sp, x29; ldp x29, x30, [sp], #16; retaa */
	assert_true(AARCH64(&row, 0x910003bf, 0xa8c17bfd, 0xd65f0bff));
	assert_cfa(&row, FP, 16);
	assert_saved(&row, LR, -8);
	/* ldr x30, [sp], #16; ret */
	assert_true(AARCH64(&row, 0xf84107fe, 0xd65f03c0));
	assert_cfa(&row, SP, 16);
	assert_saved(&row, LR, -16);
	/* Registers of other kinds: what they hold does not matter, where they leave sp does. */
	assert_true(AARCH64(&row, 0x6dbf27e8, 0xfc1f0fe8,                                    /* stp, str d: #-16 each */
			    0x6cc127e8, 0xacc127e8, 0x2cc127e8, 0x28c127e8, 0x68c127e8,      /* ldp d, q, s, w; ldpsw */
			    0xfc4107e8, 0x3cc107e8, 0xb84107e8,                              /* ldr d, q, w: #16 each */
			    0x6d4127e8, 0xfd400be8, 0xfc4083e8, 0xfc410428, 0x6cc12428, 0xb8410be8, 0xfc616be8, /* none */
			    0xa8c17bfd, 0xd65f03c0));
	assert_cfa(&row, SP, 16 + 32 + 8 + 8 + 8 + 3 * 16 - 2 * 16 + 16);
	assert_saved(&row, LR, -8);
	/* at the start: stp x29, x30, [sp, #-32]!; str x19, [sp, #16]; bl; ldr; ldp; ret */
	assert_true(AARCH64(&row, 0xa9be7bfd, 0xf9000bf3, 0x94000010, 0xf9400bf3, 0xa8c27bfd, 0xd65f03c0));
	assert_cfa(&row, SP, 0);
	assert_int_equal(row.regs[X19].kind, CFI_UNSPECIFIED);
}

static void test_aarch64_flow(void **state)
{
	struct cfi_row row;

	assert_true(AARCH64(&row, 0x54000040, 0xd4200000, 0xd65f03c0));              /* b.eq over brk */
	assert_true(AARCH64(&row, 0xb4000040, 0xd4200000, 0xd65f03c0));              /* cbz */
	assert_true(AARCH64(&row, 0x36000040, 0xd4200000, 0xd65f03c0));              /* tbz */
	assert_true(AARCH64(&row, 0x14000002, 0xd4200000, 0xd65f03c0));              /* b */
	assert_true(AARCH64(&row, 0xd4000001, 0xd65f03c0));                          /* svc */
	assert_false(AARCH64(&row, 0x14000000));                                     /* b to itself */
	assert_false(AARCH64(&row, 0xd61f0200));                                     /* br x16 */
	assert_false(AARCH64(&row, 0));                                              /* udf */
	assert_false(AARCH64(&row, 0x94000000, 0xd65f03c0));                         /* LR is lost */
	assert_false(AARCH64(&row, 0x94000000, 0xa9be7bfd, 0xa8c27bfd, 0xd65f03c0)); /* runs into another function */
	assert_false(AARCH64(&row, 0x8b2163ff, 0xd65f03c0));                         /* add sp, sp, x1 */
	assert_false(AARCH64(&row, 0xcb2163ff, 0xd65f03c0));                         /* sub sp, sp, x1 */
	assert_false(AARCH64(&row, 0x927cec3f, 0xd65f03c0));                         /* and sp, x1, #-16 */
	assert_false(AARCH64(&row, 0x0c882ffc, 0xd65f03c0));                         /* st1 {v28.1d-v31.1d}, [sp], x8 */
	assert_true(AARCH64(&row, 0x0c882d1c, 0xd65f03c0));                          /* the same with x8 */
	assert_false(AARCH64(&row, 0x043f503f, 0xd65f03c0));                         /* addvl sp, sp, #1 */
	assert_false(AARCH64(&row, 0xaa0103fe, 0xd65f03c0));                         /* mov x30, x1 */
	assert_false(AARCH64(&row, 0xf940001e, 0xd65f03c0));                         /* ldr x30, [x0] */
	assert_false(AARCH64(&row, 0xaa0103fd, 0x910003bf, 0xd65f03c0));             /* mov x29, x1; mov sp, x29 */
	/* stp x29, x30, [sp, #-16]!; mov x29, sp; mov sp, x29; ldp x29, x30, [sp], #16 */
	assert_true(AARCH64(&row, 0xa9bf7bfd, 0x910003fd, 0x910003bf, 0xa8c17bfd, 0xd65f03c0));
	assert_cfa(&row, 31, 0);
}

struct agreement {
	struct image *image;
	const struct arch *arch;
	size_t rows, read, same;
};

static int compare_row(const struct cfi_row *row, void *arg)
{
	struct agreement *a = arg;
	struct cfi_row read;

	if (row->cfa.kind != CFI_REGISTER_OFFSET || row->regs[row->ra_reg].kind == CFI_UNDEFINED)
		return 0;
	a->rows++;
	/* Where CFI and code name the CFA by different registers they cannot be compared without a stack. */
	if (!insn_read_row(a->image, a->arch, NULL, row->start, &read) || read.cfa.reg != row->cfa.reg)
		return 0;
	a->read++;
	a->same += read.cfa.offset == row->cfa.offset;
	return 0;
}

/* Where there is CFI as well, both must tell the same. */
static void compare_with_cfi(const char *path, const struct arch *arch)
{
	struct agreement a = {.arch = arch};
	struct cfi_section section;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		print_message("skipped: there is no %s\n", path);
		skip();
	}
	assert_int_equal(image_open_fd(fd, NULL, &a.image), 0);
	cfi_section_init(&section, CFI_EH_FRAME, arch, image_section(a.image, ".eh_frame"),
			 image_eh_frame_hdr(a.image));
	assert_int_equal(cfi_for_each_row(&section, compare_row, &a), 0);
	cfi_section_deinit(&section);
	image_destroy(a.image);
	print_message("%s: %zu rows, read %zu, %zu of them as the CFI says\n", path, a.rows, a.read, a.same);
	assert_true(a.read > a.rows * 7 / 10);
	assert_true(a.read - a.same < a.read / 500);
}

static void test_x86_64_against_cfi(void **state)
{
	compare_with_cfi(access("/lib/x86_64-linux-gnu/libc.so.6", R_OK) == 0 ? "/lib/x86_64-linux-gnu/libc.so.6"
									      : "/usr/x86_64-linux-gnu/lib/libc.so.6",
			 &arch_x86_64);
}

static void test_aarch64_against_cfi(void **state)
{
	compare_with_cfi(access("/lib/aarch64-linux-gnu/libc.so.6", R_OK) == 0 ? "/lib/aarch64-linux-gnu/libc.so.6"
									       : "/usr/aarch64-linux-gnu/lib/libc.so.6",
			 &arch_aarch64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_64_calls),        cmocka_unit_test(test_aarch64_calls),
		cmocka_unit_test(test_aarch64_jumps),
		cmocka_unit_test(test_x86_64_rows),         cmocka_unit_test(test_x86_64_flow),
		cmocka_unit_test(test_x86_64_lengths),      cmocka_unit_test(test_aarch64_rows),
		cmocka_unit_test(test_aarch64_flow),        cmocka_unit_test(test_x86_64_against_cfi),
		cmocka_unit_test(test_aarch64_against_cfi), cmocka_unit_test(test_straight),
	};

	return cmocka_run_group_tests_name("insn", tests, NULL, NULL);
}
