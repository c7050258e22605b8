/* SPDX-License-Identifier: MIT */
/* Walks over made-up stacks: an ELF image with a few functions, a stack of words, registers. */
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/target.h"
#include "unwind/unwind.h"
#include "cmocka_all.h"

enum {
	RBX = 3,
	RBP = 6,
	RSP = 7,
	R12 = 12,
	X19 = 19,
	FP = 29,
	LR = 30,
	SP = 31,

	/* the image: headers, .eh_frame_hdr, .eh_frame, code */
	HDR_AT = 0x200,
	EH_FRAME_AT = 0x400,
	CODE_AT = 0x1000,
	IMAGE_LEN = 0x4000,
	FUNCTION_LEN = 0x100,

	STACK_WORDS = 512,
};

#define BASE      UINT64_C(0x7f0000000000)
#define STACK     UINT64_C(0x7ffd00000000)
#define ALT_STACK UINT64_C(0x7f8000000000)

/* Functions of the image, each FUNCTION_LEN bytes. */
enum function {
	F_LEAF,       /* x86_64: CFA = rsp + 8; aarch64: CFA = sp, return address in LR */
	F_FRAME,      /* CFA = sp + 32, callee-saved registers below the return address */
	F_BY_FP,      /* CFA = fp + 16, fp saved at CFA - 16 */
	F_END,        /* the return address is undefined */
	F_NEEDS_REG,  /* CFA = a register that only a full capture has */
	F_STUCK,      /* CFA = sp, return address at CFA */
	F_PLT,        /* x86_64: CFA is an expression of rip */
	F_SIGNAL_CFI, /* augmentation S */
	F_DAMAGED,    /* an expression that pops an empty stack */
	F_COSTLY,     /* x86_64: as F_LEAF, and expressions that do not end for registers */
	F_WITH_CFI,
	F_SIGRETURN = F_WITH_CFI,
	F_BARE,    /* no CFI; never returns */
	F_RETURNS, /* no CFI; pops two registers and returns */
	F_COUNT,
};

struct world {
	const struct arch *arch;
	uint8_t image[IMAGE_LEN];
	size_t eh_frame_len;
	struct snapshot *snap;
	struct target *target;
	uint64_t stack[STACK_WORDS];
	struct snap_thread thread;
	struct regs regs;
};

static uint64_t address_of(enum function f)
{
	return BASE + CODE_AT + (uint64_t)f * FUNCTION_LEN;
}

/* A place inside the function that follows a call. */
static uint64_t return_into(enum function f)
{
	return address_of(f) + 0x20;
}

static void put(struct world *w, const void *data, size_t len)
{
	assert_true(EH_FRAME_AT + w->eh_frame_len + len <= CODE_AT);
	memcpy(w->image + EH_FRAME_AT + w->eh_frame_len, data, len);
	w->eh_frame_len += len;
}

static void put_u32(struct world *w, uint32_t value)
{
	put(w, &value, sizeof(value));
}

static uint32_t put_cie(struct world *w, bool signal_frame)
{
	uint32_t at = (uint32_t)w->eh_frame_len;
	uint8_t body[] = {1, 'z', 'R', signal_frame ? 'S' : 0, 0, 1, 0x78, w->arch->dwarf_ra, 1, 0x1b};

	put_u32(w, 4 + sizeof(body) - !signal_frame);
	put_u32(w, 0);
	put(w, body, signal_frame ? 4 : 3);
	put(w, body + 4, sizeof(body) - 4);
	return at;
}

static void put_fde(struct world *w, uint32_t cie, enum function f, const uint8_t *program, uint32_t len)
{
	put_u32(w, 4 + 8 + 1 + len);
	put_u32(w, (uint32_t)w->eh_frame_len - cie);
	put_u32(w, (uint32_t)(CODE_AT + (uint32_t)f * FUNCTION_LEN - (EH_FRAME_AT + w->eh_frame_len)));
	put_u32(w, FUNCTION_LEN);
	put(w, "", 1);
	put(w, program, len);
}

#define PUT_FDE(w, cie, f, ...)                                                                                        \
	put_fde(w, cie, f, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void put_x86_64_cfi(struct world *w)
{
	uint32_t cie = put_cie(w, false);

	PUT_FDE(w, cie, F_LEAF, 0x0c, RSP, 8, 0x90, 1);
	PUT_FDE(w, cie, F_FRAME, 0x0c, RSP, 32, 0x90, 1, 0x80 | RBX, 2, 0x80 | R12, 3);
	PUT_FDE(w, cie, F_BY_FP, 0x0c, RBP, 16, 0x90, 1, 0x80 | RBP, 2);
	PUT_FDE(w, cie, F_END, 0x0c, RSP, 8, 0x07, 16);
	PUT_FDE(w, cie, F_NEEDS_REG, 0x0c, R12, 16, 0x90, 1);
	PUT_FDE(w, cie, F_STUCK, 0x0c, RSP, 0, 0x90, 0);
	PUT_FDE(w, cie, F_PLT, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22, 0x90, 1);
	PUT_FDE(w, put_cie(w, true), F_SIGNAL_CFI, 0x0c, RSP, 16, 0x90, 1);
	PUT_FDE(w, cie, F_DAMAGED, 0x0f, 1, 0x22, 0x90, 1);
	/* lit0; again: plus_uconst 1; skip again */
	PUT_FDE(w, cie, F_COSTLY, 0x0c, RSP, 8, 0x90, 1, 0x16, RBX, 6, 0x30, 0x23, 1, 0x2f, 0xfb, 0xff, 0x16, R12, 6, 0x30,
		0x23, 1, 0x2f, 0xfb, 0xff);
}

static void put_aarch64_cfi(struct world *w)
{
	uint32_t cie = put_cie(w, false);

	PUT_FDE(w, cie, F_LEAF, 0x0c, SP, 0);
	PUT_FDE(w, cie, F_FRAME, 0x2d, 0x0c, SP, 32, 0x80 | FP, 4, 0x80 | LR, 3, 0x80 | X19, 2);
	PUT_FDE(w, cie, F_BY_FP, 0x0c, FP, 16, 0x80 | FP, 2, 0x80 | LR, 1);
	PUT_FDE(w, cie, F_END, 0x0c, SP, 0, 0x07, LR);
	PUT_FDE(w, cie, F_NEEDS_REG, 0x0c, X19, 16, 0x80 | LR, 1);
	PUT_FDE(w, cie, F_STUCK, 0x0c, SP, 0, 0x80 | LR, 0);
	PUT_FDE(w, cie, F_PLT, 0x0c, SP, 0);
	PUT_FDE(w, put_cie(w, true), F_SIGNAL_CFI, 0x0c, SP, 16, 0x80 | LR, 1);
	PUT_FDE(w, cie, F_DAMAGED, 0x0f, 1, 0x22, 0x80 | LR, 1);
	PUT_FDE(w, cie, F_COSTLY, 0x0c, SP, 0);
}

static void put_code(struct world *w)
{
	static const uint8_t x86_returns[] = {0x31, 0xc0, 0x5b, 0x41, 0x5c, 0xc3}; /* xor; pop rbx; pop r12; ret */
	/* ldp x29, x30, [sp]; ldr x19, [sp, #16]; add sp, sp, #32; ret */
	static const uint32_t aarch64_returns[] = {0xa9407bfd, 0xf9400bf3, 0x910083ff, 0xd65f03c0};
	static const uint8_t x86_call[] = {0xe8, 0, 0, 0, 0};
	static const uint32_t aarch64_call = 0x94000000;
	bool x86 = w->arch->id == ARCH_X86_64;

	for (unsigned f = 0; f < F_COUNT; f++) {
		uint8_t *code = w->image + CODE_AT + f * FUNCTION_LEN;

		memset(code, x86 ? 0xcc : 0, FUNCTION_LEN);
		/* calls that end where return_into() points, and at the very end of the function */
		if (x86) {
			memcpy(code + 0x20 - sizeof(x86_call), x86_call, sizeof(x86_call));
			memcpy(code + FUNCTION_LEN - sizeof(x86_call), x86_call, sizeof(x86_call));
		} else {
			memcpy(code + 0x20 - 4, &aarch64_call, 4);
			memcpy(code + FUNCTION_LEN - 4, &aarch64_call, 4);
		}
	}
	memcpy(w->image + CODE_AT + F_SIGRETURN * FUNCTION_LEN, w->arch->sigreturn_code[0], w->arch->sigreturn_len[0]);
	if (x86)
		memcpy(w->image + CODE_AT + F_RETURNS * FUNCTION_LEN + 0x20, x86_returns, sizeof(x86_returns));
	else
		memcpy(w->image + CODE_AT + F_RETURNS * FUNCTION_LEN + 0x20, aarch64_returns, sizeof(aarch64_returns));
}

static void put_headers(struct world *w)
{
	Elf64_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = w->arch->elf_machine,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(ehdr),
		.e_ehsize = sizeof(ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	Elf64_Phdr phdrs[] = {
		{.p_type = PT_LOAD,
		 .p_flags = PF_R | PF_X,
		 .p_filesz = IMAGE_LEN,
		 .p_memsz = IMAGE_LEN,
		 .p_align = 4096},
		{.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_offset = HDR_AT, .p_vaddr = HDR_AT, .p_filesz = 8},
	};
	/* a header without a table: version, where .eh_frame is (pc-relative), the rest omitted */
	uint8_t hdr[8] = {1, 0x1b, 0xff, 0xff};
	uint32_t to_eh_frame = EH_FRAME_AT - (HDR_AT + 4);

	memcpy(hdr + 4, &to_eh_frame, 4);
	memcpy(w->image, &ehdr, sizeof(ehdr));
	memcpy(w->image + sizeof(ehdr), phdrs, sizeof(phdrs));
	memcpy(w->image + HDR_AT, hdr, sizeof(hdr));
}

static void add_map(struct world *w, uint64_t start, uint64_t len, uint32_t perms, const char *path)
{
	struct map_entry entry = {.start = start, .end = start + len, .perms = perms, .path = path};

	assert_true(vec_push(&w->snap->maps, entry));
}

static struct world *world_create(const struct arch *arch)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err err;

	assert_non_null(w);
	w->arch = arch;
	put_headers(w);
	if (arch->id == ARCH_X86_64)
		put_x86_64_cfi(w);
	else
		put_aarch64_cfi(w);
	put_code(w);
	w->snap = snapshot_create(1, arch);
	assert_non_null(w->snap);
	w->snap->replayed = true;
	add_map(w, BASE, IMAGE_LEN, MAP_PERM_READ | MAP_PERM_EXEC, "[vdso]");
	add_map(w, ALT_STACK, 4096, MAP_PERM_READ | MAP_PERM_WRITE, "");
	add_map(w, STACK, sizeof(w->stack), MAP_PERM_READ | MAP_PERM_WRITE, "[stack]");
	assert_true(vec_push(
		&w->snap->images,
		(struct mem_copy){.start = BASE, .len = IMAGE_LEN, .region_end = BASE + IMAGE_LEN, .data = w->image}));
	w->target = target_open_saved(w->snap);
	assert_non_null(w->target);
	if (target_open_files(w->target, NULL, &err) != 0)
		fail_msg("%s", err.msg);
	w->thread.tid = 1;
	w->thread.stack = (struct mem_copy){.start = STACK,
					    .len = sizeof(w->stack),
					    .region_end = STACK + sizeof(w->stack),
					    .data = (uint8_t *)w->stack};
	return w;
}

static void world_destroy(struct world *w)
{
	target_close(w->target);
	w->snap->images.len = 0;
	snapshot_destroy(w->snap);
	free(w);
}

static void set_reg(struct world *w, unsigned dwarf, uint64_t value)
{
	for (unsigned i = 0; i < w->arch->nuser_regs; i++) {
		if (w->arch->user_to_dwarf[i] != (int)dwarf)
			continue;
		w->thread.regs.v[i] = value;
		w->thread.regs.valid |= UINT64_C(1) << i;
	}
}

static void set_pc_sp(struct world *w, uint64_t pc, uint64_t sp)
{
	w->thread.regs.v[w->arch->user_pc] = pc;
	w->thread.regs.valid |= UINT64_C(1) << w->arch->user_pc;
	w->thread.regs.v[w->arch->user_sp] = sp;
	w->thread.regs.valid |= UINT64_C(1) << w->arch->user_sp;
}

static struct raw_stack walk_with(struct world *w, struct unwind_options options)
{
	struct raw_stack out;

	unwind_thread(w->snap, w->target->modules, &w->thread, &options, &out);
	return out;
}

/* Walks, compares the pcs of all frames and the end, and leaves the stack for more. */
static struct raw_stack walk_expecting(struct world *w, enum stack_end end, const uint64_t *pcs, size_t n)
{
	struct raw_stack out = walk_with(w, (struct unwind_options){0});

	if (out.end != end)
		fail_msg("ended with %s: %s", stack_end_name(out.end), out.error);
	assert_int_equal(out.len, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(out.data[i].pc, pcs[i]);
	assert_int_equal(out.error[0] == '\0', end == STACK_COMPLETE);
	if (end != STACK_NOT_CAPTURED)
		assert_int_equal(out.end_pc, pcs[n - 1]);
	return out;
}

#define WALK(w, end, ...)                                                                                              \
	walk_expecting(w, end, (const uint64_t[]){__VA_ARGS__},                                                        \
		       sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

#define EXPECT(w, end, ...)                                                                                            \
	do {                                                                                                           \
		struct raw_stack out_ = WALK(w, end, __VA_ARGS__);                                                     \
		raw_stack_deinit(&out_);                                                                               \
	} while (0)

static void test_x86_64_frames(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct raw_stack out;

	set_pc_sp(w, address_of(F_LEAF), STACK);
	set_reg(w, RBP, STACK + 8 * 20);
	w->stack[0] = return_into(F_FRAME);
	w->stack[4] = return_into(F_BY_FP);
	w->stack[20] = 0; /* the caller's rbp */
	w->stack[21] = return_into(F_END);
	out = WALK(w, STACK_COMPLETE, address_of(F_LEAF), return_into(F_FRAME), return_into(F_BY_FP),
		   return_into(F_END));
	assert_int_equal(out.data[0].flags, 0);
	assert_int_equal(out.data[1].flags, FRAME_RETURN_ADDRESS);
	assert_int_equal(out.data[0].sp, STACK);
	assert_int_equal(out.data[1].sp, STACK + 8);
	assert_int_equal(out.data[2].sp, STACK + 8 * 5);
	assert_int_equal(out.data[3].sp, STACK + 8 * 22);
	assert_int_equal(out.missing, 0);
	raw_stack_deinit(&out);
	world_destroy(w);
}

static void test_aarch64_frames(void **state)
{
	const uint64_t signature = UINT64_C(0x0035000000000000);
	struct world *w = world_create(&arch_aarch64);

	set_pc_sp(w, address_of(F_LEAF), STACK);
	set_reg(w, LR, return_into(F_FRAME) | signature);
	set_reg(w, FP, STACK);
	w->stack[0] = STACK + 8 * 20;
	w->stack[1] = return_into(F_BY_FP) | signature;
	w->stack[2] = 0x1919;
	w->stack[20] = 0;
	w->stack[21] = return_into(F_END);
	EXPECT(w, STACK_COMPLETE, address_of(F_LEAF), return_into(F_FRAME), return_into(F_BY_FP), return_into(F_END));
	world_destroy(w);
}

/* A call that does not return may be a function's last instruction: its return address is in the next function. */
static void test_return_address_after_the_function(void **state)
{
	struct world *w = world_create(&arch_x86_64);

	set_pc_sp(w, address_of(F_LEAF), STACK);
	w->stack[0] = address_of(F_FRAME) + FUNCTION_LEN; /* the first byte of F_BY_FP */
	w->stack[4] = return_into(F_END);
	EXPECT(w, STACK_COMPLETE, address_of(F_LEAF), address_of(F_FRAME) + FUNCTION_LEN, return_into(F_END));
	world_destroy(w);
}

/* Fills the kernel's signal frame at word `at` of the stack. */
static void put_signal_frame(struct world *w, unsigned at, uint64_t pc, uint64_t sp, unsigned reg, uint64_t value)
{
	uint8_t *frame = (uint8_t *)&w->stack[at];

	memcpy(frame + w->arch->sigframe_pc_offset, &pc, 8);
	memcpy(frame + w->arch->sigframe_offset[w->arch->dwarf_sp], &sp, 8);
	memcpy(frame + w->arch->sigframe_offset[reg], &value, 8);
}

/* The interrupted pc is exact: the first instruction of F_FRAME, which is not in the function before it. */
static void test_x86_64_signal_frame(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct raw_stack out;

	set_pc_sp(w, address_of(F_LEAF), STACK);
	w->stack[0] = address_of(F_SIGRETURN);
	put_signal_frame(w, 1, address_of(F_FRAME), STACK + 8 * 200, RBP, STACK + 8 * 300);
	w->stack[203] = return_into(F_BY_FP);
	w->stack[300] = 0;
	w->stack[301] = return_into(F_END);
	out = WALK(w, STACK_COMPLETE, address_of(F_LEAF), address_of(F_SIGRETURN), address_of(F_FRAME),
		   return_into(F_BY_FP), return_into(F_END));
	assert_int_equal(out.data[1].flags, FRAME_SIGNAL);
	assert_int_equal(out.data[2].flags, 0);
	assert_int_equal(out.data[3].flags, FRAME_RETURN_ADDRESS);
	raw_stack_deinit(&out);
	world_destroy(w);
}

/* A leaf that was interrupted: LR of the signal frame is its return address. */
static void test_aarch64_signal_frame(void **state)
{
	struct world *w = world_create(&arch_aarch64);
	struct raw_stack out;

	set_pc_sp(w, address_of(F_LEAF), STACK);
	set_reg(w, LR, address_of(F_SIGRETURN));
	put_signal_frame(w, 0, address_of(F_LEAF), STACK + 8 * 400, LR, return_into(F_END));
	out = WALK(w, STACK_COMPLETE, address_of(F_LEAF), address_of(F_SIGRETURN), address_of(F_LEAF),
		   return_into(F_END));
	assert_int_equal(out.data[1].flags, FRAME_SIGNAL);
	raw_stack_deinit(&out);
	world_destroy(w);
}

static void test_signal_frame_by_cfi(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct raw_stack out;

	set_pc_sp(w, address_of(F_LEAF), STACK);
	w->stack[0] = return_into(F_SIGNAL_CFI);
	w->stack[2] = address_of(F_FRAME); /* exact */
	w->stack[6] = return_into(F_END);
	out = WALK(w, STACK_COMPLETE, address_of(F_LEAF), return_into(F_SIGNAL_CFI), address_of(F_FRAME),
		   return_into(F_END));
	assert_int_equal(out.data[1].flags, FRAME_SIGNAL);
	assert_int_equal(out.data[2].flags, 0);
	raw_stack_deinit(&out);
	world_destroy(w);
}

/* From a signal stack above back to the thread's own below. */
static void test_signal_frame_may_go_down(void **state)
{
	struct world *w = world_create(&arch_x86_64);

	set_pc_sp(w, address_of(F_LEAF), STACK + 8 * 200);
	w->stack[200] = address_of(F_SIGRETURN);
	put_signal_frame(w, 201, address_of(F_LEAF), STACK, RBP, 0);
	w->stack[0] = return_into(F_END);
	EXPECT(w, STACK_COMPLETE, address_of(F_LEAF), address_of(F_SIGRETURN), address_of(F_LEAF), return_into(F_END));
	world_destroy(w);
}

static void test_call_of_a_null_pointer(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct raw_stack out;

	set_pc_sp(w, address_of(F_LEAF), STACK);
	w->stack[0] = address_of(F_SIGRETURN);
	put_signal_frame(w, 1, 0, STACK + 8 * 200, RBP, 0);
	w->stack[200] = return_into(F_END);
	out = WALK(w, STACK_COMPLETE, address_of(F_LEAF), address_of(F_SIGRETURN), 0, return_into(F_END));
	assert_int_equal(out.data[3].flags, FRAME_RETURN_ADDRESS | FRAME_BY_SCAN);
	raw_stack_deinit(&out);
	w->stack[200] = 0x1234;
	EXPECT(w, STACK_NO_UNWIND_INFO, address_of(F_LEAF), address_of(F_SIGRETURN), 0);
	world_destroy(w);
}

static void test_caller_pc_zero_is_the_end(void **state)
{
	struct world *w = world_create(&arch_x86_64);

	set_pc_sp(w, address_of(F_LEAF), STACK);
	EXPECT(w, STACK_COMPLETE, address_of(F_LEAF));
	world_destroy(w);
}

static void test_plt_stub(void **state)
{
	struct world *w = world_create(&arch_x86_64);

	w->stack[0] = 0x1;
	w->stack[1] = return_into(F_END);
	set_pc_sp(w, address_of(F_PLT) + 0x1b, STACK); /* after the push */
	EXPECT(w, STACK_COMPLETE, address_of(F_PLT) + 0x1b, return_into(F_END));
	set_pc_sp(w, address_of(F_PLT) + 0x16, STACK + 8); /* before it */
	EXPECT(w, STACK_COMPLETE, address_of(F_PLT) + 0x16, return_into(F_END));
	world_destroy(w);
}

static void test_missing_register(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct raw_stack out;

	/* as /proc gives them: pc and sp only */
	set_pc_sp(w, address_of(F_NEEDS_REG), STACK);
	out = WALK(w, STACK_MISSING_REGISTER, address_of(F_NEEDS_REG));
	assert_non_null(strstr(out.error, "r12"));
	raw_stack_deinit(&out);
	set_reg(w, R12, STACK);
	w->stack[1] = return_into(F_END);
	EXPECT(w, STACK_COMPLETE, address_of(F_NEEDS_REG), return_into(F_END));
	/* registers that calls do not preserve are not taken for the caller's, even when known */
	set_pc_sp(w, address_of(F_BARE), STACK);
	w->thread.regs.valid = 0;
	set_pc_sp(w, address_of(F_BARE), STACK);
	EXPECT(w, STACK_MISSING_REGISTER, address_of(F_BARE));
	world_destroy(w);
}

static void test_damaged_cfi(void **state)
{
	struct world *w = world_create(&arch_x86_64);

	set_pc_sp(w, address_of(F_DAMAGED), STACK);
	EXPECT(w, STACK_NO_UNWIND_INFO, address_of(F_DAMAGED));
	world_destroy(w);
}

static void test_copy_limit_and_unreadable(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct raw_stack out;

	set_pc_sp(w, address_of(F_LEAF), STACK);
	w->stack[0] = return_into(F_FRAME);
	w->thread.stack.len = 8 * 4; /* the next return address is the fifth word */
	out = WALK(w, STACK_COPY_LIMIT, address_of(F_LEAF), return_into(F_FRAME));
	assert_non_null(strstr(out.error, "32 bytes"));
	raw_stack_deinit(&out);
	w->thread.stack.region_end = STACK + 8 * 4; /* the mapping ends there, too */
	EXPECT(w, STACK_UNREADABLE, address_of(F_LEAF), return_into(F_FRAME));
	set_pc_sp(w, address_of(F_LEAF), 0x10);
	EXPECT(w, STACK_UNREADABLE, address_of(F_LEAF));
	world_destroy(w);
}

/* A live process that has what the copy does not. */
struct fake_live {
	struct mem mem;
	struct world *w;
};

static ssize_t fake_live_read(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	const struct fake_live *live = (const struct fake_live *)mem;

	if (address < STACK || address + len > STACK + sizeof(live->w->stack))
		return -EFAULT;
	memcpy(buf, (const uint8_t *)live->w->stack + (address - STACK), len);
	return (ssize_t)len;
}

static void test_live_memory(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct fake_live live = {.mem = {.read = fake_live_read}, .w = w};
	struct raw_stack out;

	set_pc_sp(w, address_of(F_LEAF), STACK);
	w->stack[0] = return_into(F_FRAME);
	w->stack[4] = return_into(F_END);
	w->thread.stack.len = 8 * 4;
	/* what --stack-size left out is not read by another way */
	out = walk_with(w, (struct unwind_options){.live = &live.mem});
	assert_int_equal(out.end, STACK_COPY_LIMIT);
	assert_int_equal(out.missing, 0);
	raw_stack_deinit(&out);
	/* what is not in the thread's own stack is */
	w->thread.stack.region_end = w->thread.stack.start + w->thread.stack.len;
	out = walk_with(w, (struct unwind_options){.live = &live.mem});
	assert_int_equal(out.end, STACK_COMPLETE);
	assert_int_equal(out.len, 3);
	assert_int_equal(out.missing, 0);
	raw_stack_deinit(&out);
	world_destroy(w);
}

/* The walk tells what it lacked, and has it when that was copied besides the stack. */
static void test_missing_memory(void **state)
{
	uint64_t words[] = {return_into(F_END)};
	struct world *w = world_create(&arch_x86_64);
	struct snap_copy copy = {.tid = w->thread.tid,
				 .copy = {.start = STACK + 8 * 4, .len = sizeof(words), .data = (uint8_t *)words}};
	struct raw_stack out;

	set_pc_sp(w, address_of(F_LEAF), STACK);
	w->stack[0] = return_into(F_FRAME);
	w->thread.stack.len = 8 * 4;
	w->thread.stack.region_end = STACK + 8 * 4; /* what follows is of another mapping */
	out = WALK(w, STACK_UNREADABLE, address_of(F_LEAF), return_into(F_FRAME));
	assert_int_equal(out.missing, STACK + 8 * 4);
	raw_stack_deinit(&out);

	assert_true(vec_push(&w->snap->copies, copy));
	out = WALK(w, STACK_COMPLETE, address_of(F_LEAF), return_into(F_FRAME), return_into(F_END));
	assert_int_equal(out.missing, 0);
	raw_stack_deinit(&out);

	w->snap->copies.data[0].tid++; /* what was read for another thread may be of another instant */
	out = WALK(w, STACK_UNREADABLE, address_of(F_LEAF), return_into(F_FRAME));
	assert_int_equal(out.missing, STACK + 8 * 4);
	raw_stack_deinit(&out);

	assert_int_equal(w->snap->maps.data[2].start, STACK);
	w->snap->maps.data[2].perms |= MAP_PERM_EXEC; /* an executable stack is data, too */
	out = WALK(w, STACK_UNREADABLE, address_of(F_LEAF), return_into(F_FRAME));
	assert_int_equal(out.missing, STACK + 8 * 4);
	raw_stack_deinit(&out);

	w->snap->copies.data[0].tid = 0; /* what was read for the process is everybody's */
	EXPECT(w, STACK_COMPLETE, address_of(F_LEAF), return_into(F_FRAME), return_into(F_END));

	/* The very first word. */
	set_pc_sp(w, address_of(F_LEAF), 0x10);
	out = WALK(w, STACK_UNREADABLE, address_of(F_LEAF));
	assert_int_equal(out.missing, 0x10);
	raw_stack_deinit(&out);
	world_destroy(w);
}

static void test_no_progress(void **state)
{
	struct world *w = world_create(&arch_x86_64);

	/* allowed once for the innermost frame, not for its caller */
	set_pc_sp(w, address_of(F_STUCK), STACK);
	w->stack[0] = return_into(F_STUCK);
	EXPECT(w, STACK_NO_PROGRESS, address_of(F_STUCK), return_into(F_STUCK));
	/* not even once to itself */
	w->stack[0] = address_of(F_STUCK);
	EXPECT(w, STACK_NO_PROGRESS, address_of(F_STUCK));
	/* a frame pointer that leads back down */
	set_pc_sp(w, address_of(F_BY_FP), STACK + 8 * 20);
	set_reg(w, RBP, STACK);
	w->stack[1] = return_into(F_END);
	EXPECT(w, STACK_NO_PROGRESS, address_of(F_BY_FP));
	world_destroy(w);
}

static void test_aarch64_caller_cannot_be_a_leaf(void **state)
{
	struct world *w = world_create(&arch_aarch64);
	struct raw_stack out;

	set_pc_sp(w, address_of(F_FRAME), STACK);
	w->stack[1] = return_into(F_LEAF);
	out = WALK(w, STACK_NO_PROGRESS, address_of(F_FRAME), return_into(F_LEAF));
	assert_non_null(strstr(out.error, "overwritten"));
	raw_stack_deinit(&out);
	world_destroy(w);
}

static void test_depth_limit(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct raw_stack out;

	set_pc_sp(w, address_of(F_LEAF), STACK);
	for (unsigned i = 0; i < 100; i++)
		w->stack[i] = return_into(F_LEAF);
	w->stack[100] = return_into(F_END);
	out = walk_with(w, (struct unwind_options){.depth = 10});
	assert_int_equal(out.end, STACK_DEPTH_LIMIT);
	assert_int_equal(out.len, 10);
	raw_stack_deinit(&out);
	out = walk_with(w, (struct unwind_options){.depth = 102}); /* just deep enough is not cut */
	assert_int_equal(out.end, STACK_COMPLETE);
	assert_int_equal(out.len, 102);
	raw_stack_deinit(&out);
	world_destroy(w);
}

/* What a file can make last is paid for by its process, over all threads. */
static void test_budget(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct budget budget = {.left = 1 << 20};
	struct raw_stack out;

	set_pc_sp(w, address_of(F_COSTLY), STACK);
	for (unsigned i = 0; i < 400; i++)
		w->stack[i] = return_into(F_COSTLY);
	w->stack[400] = return_into(F_END);
	out = walk_with(w, (struct unwind_options){.budget = &budget});
	assert_int_equal(out.end, STACK_NO_UNWIND_INFO);
	assert_string_equal(out.error, "the unwind information of [vdso] takes too long to follow");
	assert_in_range(out.len, 30, 100);
	raw_stack_deinit(&out);
	for (unsigned i = 0; i < 1000; i++) { /* as many threads as it likes */
		out = walk_with(w, (struct unwind_options){.budget = &budget});
		assert_int_equal(out.end, STACK_NO_UNWIND_INFO);
		assert_int_equal(out.len, 1);
		raw_stack_deinit(&out);
	}
	/* The same with all that a process may cost: here that is enough. */
	budget = (struct budget){.left = UNWIND_BUDGET};
	out = walk_with(w, (struct unwind_options){.budget = &budget});
	assert_int_equal(out.end, STACK_COMPLETE);
	assert_int_equal(out.len, 402);
	raw_stack_deinit(&out);
	assert_in_range(UNWIND_BUDGET - budget.left, 400 * 4 * 4096, 400 * 4 * 4096 + 402 * 100);
	world_destroy(w);
}

/* Frames that are searched for, and frames as such. */
static void test_budget_of_ordinary_frames(void **state)
{
	static const struct {
		enum function f;
		uint64_t most; /* for a frame */
	} cases[] = {{F_LEAF, 50}, {F_BARE, 256 * 30}};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct world *w = world_create(&arch_x86_64);
		struct budget budget = {.left = UNWIND_BUDGET};
		struct raw_stack out;
		uint64_t used;

		set_pc_sp(w, return_into(cases[c].f), STACK);
		set_reg(w, RBP, 1);
		for (unsigned i = 0; i < 400; i++)
			w->stack[i] = return_into(cases[c].f);
		out = walk_with(w, (struct unwind_options){.budget = &budget, .depth = 100});
		assert_int_equal(out.len, 100);
		raw_stack_deinit(&out);
		used = UNWIND_BUDGET - budget.left;
		assert_in_range(used, 99 * 32, 100 * cases[c].most);
		budget.left = used / 2;
		out = walk_with(w, (struct unwind_options){.budget = &budget, .depth = 100});
		assert_int_equal(out.end, STACK_NO_UNWIND_INFO);
		assert_non_null(strstr(out.error, "takes too long"));
		assert_in_range(out.len, 40, 60);
		raw_stack_deinit(&out);
		world_destroy(w);
	}
}

static void walk_deep(const struct arch *arch, size_t frames, enum stack_end end, size_t expected)
{
	struct world *w = world_create(arch);
	size_t frame_words = 4;
	uint64_t *stack = calloc(frames + 2, frame_words * 8);
	struct raw_stack out;

	assert_non_null(stack);
	for (size_t i = 0; i < frames; i++)
		stack[i * frame_words + (arch->id == ARCH_X86_64 ? 3 : 1)] =
			i + 2 < frames ? return_into(F_FRAME) : return_into(F_END);
	w->thread.stack = (struct mem_copy){.start = STACK,
					    .len = (frames + 2) * frame_words * 8,
					    .region_end = STACK + (frames + 2) * frame_words * 8,
					    .data = (uint8_t *)stack};
	set_pc_sp(w, address_of(F_FRAME), STACK);
	out = walk_with(w, (struct unwind_options){0});
	assert_int_equal(out.end, end);
	assert_int_equal(out.len, expected);
	raw_stack_deinit(&out);
	free(stack);
	world_destroy(w);
}

static void test_deep_stacks(void **state)
{
	walk_deep(&arch_x86_64, 10000, STACK_COMPLETE, 10000);
	walk_deep(&arch_aarch64, 10000, STACK_COMPLETE, 10000);
	walk_deep(&arch_x86_64, UNWIND_DEFAULT_DEPTH, STACK_COMPLETE, UNWIND_DEFAULT_DEPTH);
	walk_deep(&arch_x86_64, UNWIND_DEFAULT_DEPTH + 1, STACK_DEPTH_LIMIT, UNWIND_DEFAULT_DEPTH);
}

static void test_frame_pointer(void **state)
{
	const struct arch *const arches[] = {&arch_x86_64, &arch_aarch64};

	for (size_t i = 0; i < 2; i++) {
		struct world *w = world_create(arches[i]);
		unsigned fp = arches[i]->dwarf_fp;
		struct raw_stack out;

		set_pc_sp(w, return_into(F_BARE), STACK);
		set_reg(w, fp, STACK + 8 * 10);
		w->stack[10] = STACK + 8 * 20;
		w->stack[11] = return_into(F_BARE);
		w->stack[20] = 0;
		w->stack[21] = return_into(F_BARE);
		/* the last frame has frame pointer 0: the mark of the outermost */
		out = WALK(w, STACK_COMPLETE, return_into(F_BARE), return_into(F_BARE), return_into(F_BARE));
		assert_int_equal(out.data[1].flags, FRAME_RETURN_ADDRESS | FRAME_BY_FRAME_POINTER);
		assert_int_equal(out.data[2].sp, STACK + 8 * 22);
		raw_stack_deinit(&out);
		/* one that leads to where the stack was not copied */
		w->thread.stack.len = 8 * 15;
		EXPECT(w, STACK_COPY_LIMIT, return_into(F_BARE), return_into(F_BARE));
		w->thread.stack.len = sizeof(w->stack);
		/* frame pointers that are none: misaligned, below sp, not before a return address */
		w->stack[11] = w->stack[21] = 0;
		set_reg(w, fp, STACK + 8 * 10 + 4);
		EXPECT(w, STACK_NO_UNWIND_INFO, return_into(F_BARE));
		set_reg(w, fp, STACK - 16);
		EXPECT(w, STACK_NO_UNWIND_INFO, return_into(F_BARE));
		set_reg(w, fp, STACK + 8 * 10);
		w->stack[11] = address_of(F_BARE) + 8; /* code, but no call before it */
		EXPECT(w, STACK_NO_UNWIND_INFO, return_into(F_BARE));
		world_destroy(w);
	}
}

/* Nothing but the stack to go by: data, code addresses that no call precedes, then a return address. */
static void test_scan(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct raw_stack out;

	set_pc_sp(w, return_into(F_BARE), STACK);
	set_reg(w, RBP, 1);
	w->stack[0] = 42;
	w->stack[1] = address_of(F_FRAME) + 3;
	w->stack[2] = STACK + 64;
	w->stack[5] = return_into(F_END);
	out = WALK(w, STACK_COMPLETE, return_into(F_BARE), return_into(F_END));
	assert_int_equal(out.data[1].flags, FRAME_RETURN_ADDRESS | FRAME_BY_SCAN);
	assert_int_equal(out.data[1].sp, STACK + 8 * 6);
	raw_stack_deinit(&out);
	/* it may lie where the stack was not copied */
	w->stack[5] = 0;
	w->thread.stack.len = 8 * 100;
	EXPECT(w, STACK_COPY_LIMIT, return_into(F_BARE));
	w->thread.stack.len = sizeof(w->stack);
	/* out of reach */
	w->stack[300] = return_into(F_END);
	EXPECT(w, STACK_NO_UNWIND_INFO, return_into(F_BARE));
	world_destroy(w);
}

/* Of several return addresses the one whose call goes to the function of the pc. */
static void test_scan_prefers_calls_of_the_function(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	uint8_t *call = w->image + CODE_AT + F_END * FUNCTION_LEN + 0x40;
	int32_t distance = (int32_t)(address_of(F_BARE) - (address_of(F_END) + 0x45));

	call[0] = 0xe8;
	memcpy(call + 1, &distance, 4);
	set_pc_sp(w, return_into(F_BARE), STACK);
	set_reg(w, RBP, 1);
	w->stack[1] = return_into(F_FRAME); /* left over from an earlier call */
	w->stack[4] = address_of(F_END) + 0x45;
	EXPECT(w, STACK_COMPLETE, return_into(F_BARE), address_of(F_END) + 0x45);
	world_destroy(w);
}

/* The code tells what it will pop before it returns: no CFI and no frame pointer are needed. */
static void test_reading_the_code(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct raw_stack out;

	set_pc_sp(w, return_into(F_RETURNS), STACK);
	w->stack[0] = 0xbbbb;
	w->stack[1] = STACK + 8 * 8; /* the caller's r12 */
	w->stack[2] = return_into(F_NEEDS_REG);
	w->stack[9] = return_into(F_END);
	out = WALK(w, STACK_COMPLETE, return_into(F_RETURNS), return_into(F_NEEDS_REG), return_into(F_END));
	assert_int_equal(out.data[1].flags, FRAME_RETURN_ADDRESS | FRAME_BY_CODE);
	assert_int_equal(out.data[2].flags, FRAME_RETURN_ADDRESS);
	raw_stack_deinit(&out);
	world_destroy(w);

	w = world_create(&arch_aarch64);
	set_pc_sp(w, return_into(F_RETURNS), STACK);
	set_reg(w, FP, STACK);
	w->stack[1] = return_into(F_NEEDS_REG);
	w->stack[2] = STACK + 8 * 8; /* x19 */
	w->stack[9] = return_into(F_END);
	out = WALK(w, STACK_COMPLETE, return_into(F_RETURNS), return_into(F_NEEDS_REG), return_into(F_END));
	assert_int_equal(out.data[1].flags, FRAME_RETURN_ADDRESS | FRAME_BY_FRAME_POINTER); /* fp says the same */
	raw_stack_deinit(&out);
	world_destroy(w);
}

static void test_aarch64_link_register_without_cfi(void **state)
{
	struct world *w = world_create(&arch_aarch64);
	struct raw_stack out;

	set_pc_sp(w, address_of(F_BARE), STACK);
	set_reg(w, FP, 1);
	set_reg(w, LR, return_into(F_END));
	out = WALK(w, STACK_COMPLETE, address_of(F_BARE), return_into(F_END));
	assert_int_equal(out.data[1].flags, FRAME_RETURN_ADDRESS | FRAME_BY_SCAN);
	raw_stack_deinit(&out);
	world_destroy(w);
}

/* A file that cannot be opened: the reason is in the stack's end. */
static void test_module_without_file(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct raw_stack out;

	w->snap->images.len = 0;
	w->snap->maps.data[0].inode = 1;
	w->snap->maps.data[0].path = "/no/such/file";
	assert_int_equal(target_open_files(w->target, NULL, NULL), 0);
	set_pc_sp(w, address_of(F_LEAF), STACK);
	set_reg(w, RBP, 1);
	out = WALK(w, STACK_NO_UNWIND_INFO, address_of(F_LEAF));
	assert_non_null(strstr(out.error, "/no/such/file: "));
	raw_stack_deinit(&out);
	world_destroy(w);
}

static void test_not_captured(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct raw_stack out;

	w->thread.status = THREAD_RUNNING;
	w->thread.why = "it was running";
	out = walk_with(w, (struct unwind_options){0});
	assert_int_equal(out.end, STACK_NOT_CAPTURED);
	assert_int_equal(out.len, 0);
	assert_string_equal(out.error, "it was running");
	world_destroy(w);
}

static ssize_t no_memory(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	return -EFAULT;
}

static void test_given_registers(void **state)
{
	struct world *w = world_create(&arch_x86_64);
	struct mem mem = {.read = no_memory};
	struct regs regs = {.pc = address_of(F_LEAF)};
	struct raw_stack out;

	regs_put(&regs, RSP, STACK);
	unwind_regs(w->snap, w->target->modules, &regs, &mem, &(struct unwind_options){0}, &out);
	assert_int_equal(out.end, STACK_UNREADABLE);
	assert_int_equal(out.len, 1);
	raw_stack_deinit(&out);
	world_destroy(w);
}

/* Any stack must end: words that look like anything, at every depth. */
static void test_random_stacks(void **state)
{
	const struct arch *const arches[] = {&arch_x86_64, &arch_aarch64};
	uint64_t seed = 1;

	for (size_t i = 0; i < 2; i++) {
		struct world *w = world_create(arches[i]);

		for (unsigned round = 0; round < 2000; round++) {
			struct raw_stack out;

			for (unsigned j = 0; j < STACK_WORDS; j++) {
				seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
				w->stack[j] = (seed >> 60) < 8
						      ? BASE + CODE_AT + (seed >> 20) % (F_COUNT * FUNCTION_LEN)
						      : STACK + (seed >> 20) % sizeof(w->stack);
			}
			set_pc_sp(w, w->stack[0], STACK + (seed >> 33) % 256 * 8);
			set_reg(w, arches[i]->dwarf_fp, w->stack[1]);
			set_reg(w, LR, w->stack[2]);
			out = walk_with(w, (struct unwind_options){.depth = 100});
			assert_in_range(out.len, 1, 100);
			raw_stack_deinit(&out);
		}
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_64_frames),
		cmocka_unit_test(test_aarch64_frames),
		cmocka_unit_test(test_return_address_after_the_function),
		cmocka_unit_test(test_x86_64_signal_frame),
		cmocka_unit_test(test_aarch64_signal_frame),
		cmocka_unit_test(test_signal_frame_by_cfi),
		cmocka_unit_test(test_signal_frame_may_go_down),
		cmocka_unit_test(test_call_of_a_null_pointer),
		cmocka_unit_test(test_caller_pc_zero_is_the_end),
		cmocka_unit_test(test_plt_stub),
		cmocka_unit_test(test_missing_register),
		cmocka_unit_test(test_damaged_cfi),
		cmocka_unit_test(test_copy_limit_and_unreadable),
		cmocka_unit_test(test_live_memory),
		cmocka_unit_test(test_missing_memory),
		cmocka_unit_test(test_no_progress),
		cmocka_unit_test(test_aarch64_caller_cannot_be_a_leaf),
		cmocka_unit_test(test_depth_limit),
		cmocka_unit_test(test_deep_stacks),
		cmocka_unit_test(test_frame_pointer),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_scan_prefers_calls_of_the_function),
		cmocka_unit_test(test_reading_the_code),
		cmocka_unit_test(test_aarch64_link_register_without_cfi),
		cmocka_unit_test(test_module_without_file),
		cmocka_unit_test(test_not_captured),
		cmocka_unit_test(test_given_registers),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_budget_of_ordinary_frames),
		cmocka_unit_test(test_random_stacks),
	};

	return cmocka_run_group_tests_name("unwind", tests, NULL, NULL);
}
