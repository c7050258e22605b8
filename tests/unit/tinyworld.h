/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_TINYWORLD_H
#define STAKEOUT_TESTS_TINYWORLD_H

#include "cfimake.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "target/target.h"
#include "unwind/walk.h"

/*
 * The least that one step of a walk needs: a file of code with CFI for what the test names, a mapping of code that is
 * of no file, a stack, registers.
 */

enum {
	TINY_HDR_AT = 0x200,
	TINY_EH_FRAME_AT = 0x400,
	TINY_SHDRS_AT = 0xa00,
	TINY_CODE_AT = 0x1000,
	TINY_PLT_AT = 0x1800, /* to the end: a section called .plt */
	TINY_ENTRY_AT = 0x1400,
	TINY_IMAGE_LEN = 0x2000,
	TINY_JIT_LEN = 0x100,
	TINY_STACK_WORDS = 128, /* more than a signal frame has */
	TINY_STACK_MAP = 2,     /* its place in the memory map */
};

#define TINY_BASE  UINT64_C(0x7f0000000000)
#define TINY_CODE  (TINY_BASE + TINY_CODE_AT)
#define TINY_JIT   UINT64_C(0x7f1000000000)
#define TINY_STACK UINT64_C(0x7ffd00000000)

struct tiny {
	struct mem mem;
	const struct arch *arch;
	uint8_t image[TINY_IMAGE_LEN] __attribute__((aligned(8)));
	uint8_t jit[TINY_JIT_LEN];
	struct cfimake eh_frame;
	size_t cie;
	uint64_t stack[TINY_STACK_WORDS];
	struct snapshot *snap;
	struct target *target; /* made at the first step: what is in the image by then counts */
	struct mem_copy copy;
	struct raw_stack out;
	struct walk walk;
};

static inline ssize_t tiny_read(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct tiny *t = (struct tiny *)mem;
	uint64_t in_stack = address - TINY_STACK, in_jit = address - TINY_JIT;

	if (in_stack < sizeof(t->stack) && len <= sizeof(t->stack) - in_stack)
		memcpy(buf, (uint8_t *)t->stack + in_stack, len);
	else if (in_jit < sizeof(t->jit) && len <= sizeof(t->jit) - in_jit)
		memcpy(buf, t->jit + in_jit, len);
	else
		return -EFAULT;
	return (ssize_t)len;
}

static inline void tiny_put_headers(struct tiny *t)
{
	static const char names[] = "\0.plt\0.names";
	Elf64_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = t->arch->elf_machine,
		.e_version = EV_CURRENT,
		.e_entry = TINY_ENTRY_AT,
		.e_phoff = sizeof(ehdr),
		.e_shoff = TINY_SHDRS_AT,
		.e_ehsize = sizeof(ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 2,
	};
	Elf64_Phdr phdrs[] = {
		{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = TINY_IMAGE_LEN, .p_memsz = TINY_IMAGE_LEN},
		{.p_type = PT_GNU_EH_FRAME, .p_offset = TINY_HDR_AT, .p_vaddr = TINY_HDR_AT, .p_filesz = 8},
	};
	Elf64_Shdr shdrs[3] = {
		[1] = {.sh_name = 1,
		       .sh_type = SHT_PROGBITS,
		       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		       .sh_addr = TINY_PLT_AT,
		       .sh_offset = TINY_PLT_AT,
		       .sh_size = TINY_IMAGE_LEN - TINY_PLT_AT},
		[2] = {.sh_name = 6,
		       .sh_type = SHT_STRTAB,
		       .sh_offset = TINY_SHDRS_AT + sizeof(shdrs),
		       .sh_size = sizeof(names)},
	};
	uint8_t hdr[8] = {1, 0x1b, 0xff, 0xff}; /* no table; .eh_frame is so far from here: */
	uint32_t distance = TINY_EH_FRAME_AT - (TINY_HDR_AT + 4);

	memcpy(hdr + 4, &distance, 4);
	memcpy(t->image, &ehdr, sizeof(ehdr));
	memcpy(t->image + sizeof(ehdr), phdrs, sizeof(phdrs));
	memcpy(t->image + TINY_HDR_AT, hdr, sizeof(hdr));
	memcpy(t->image + TINY_SHDRS_AT, shdrs, sizeof(shdrs));
	memcpy(t->image + TINY_SHDRS_AT + sizeof(shdrs), names, sizeof(names));
}

static inline void tiny_map(struct tiny *t, uint64_t start, uint64_t len, uint32_t perms, const char *path)
{
	struct map_entry entry = {.start = start, .end = start + len, .perms = perms, .path = path};

	assert_true(vec_push(&t->snap->maps, entry));
}

/* All code is a trap until the test puts something there. */
static inline struct tiny *tiny_create(const struct arch *arch)
{
	struct tiny *t = calloc(1, sizeof(*t));
	uint8_t trap = arch->id == ARCH_X86_64 ? 0xcc : 0;

	assert_non_null(t);
	t->mem.read = tiny_read;
	t->arch = arch;
	t->snap = snapshot_create(1, arch);
	t->snap->replayed = true;
	memset(t->image + TINY_CODE_AT, trap, TINY_IMAGE_LEN - TINY_CODE_AT);
	memset(t->jit, trap, sizeof(t->jit));
	tiny_put_headers(t);
	t->eh_frame.vaddr = TINY_EH_FRAME_AT;
	t->cie = cfimake_cie(&t->eh_frame, arch->dwarf_ra, 0x1b);
	tiny_map(t, TINY_BASE, TINY_IMAGE_LEN, MAP_PERM_READ | MAP_PERM_EXEC, "[vdso]");
	tiny_map(t, TINY_JIT, TINY_JIT_LEN, MAP_PERM_READ | MAP_PERM_EXEC, "");
	tiny_map(t, TINY_STACK, sizeof(t->stack), MAP_PERM_READ | MAP_PERM_WRITE, "[stack]");
	t->copy = (struct mem_copy){.start = TINY_STACK,
				    .len = sizeof(t->stack),
				    .region_end = TINY_STACK + sizeof(t->stack),
				    .data = (uint8_t *)t->stack};
	t->walk =
		(struct walk){.arch = arch, .maps = &t->snap->maps, .mem = &t->mem, .stack = &t->copy, .out = &t->out};
	return t;
}

static inline void tiny_destroy(struct tiny *t)
{
	target_close(t->target);
	t->snap->images.len = 0;
	snapshot_destroy(t->snap);
	raw_stack_deinit(&t->out);
	free(t);
}

/* CFI for `len` bytes of code from TINY_CODE + offset. */
#define TINY_CFI(t, offset, len, ...) CFIMAKE_FDE(&(t)->eh_frame, (t)->cie, TINY_CODE_AT + (offset), len, __VA_ARGS__)

/* Puts bytes of code at an address of the file or of the other mapping. */
static inline void tiny_code(struct tiny *t, uint64_t address, const void *code, size_t len)
{
	uint8_t *at = address >= TINY_JIT ? t->jit + (address - TINY_JIT) : t->image + (address - TINY_BASE);

	memcpy(at, code, len);
}

/* Puts a call before the address, which so becomes one that a call returns to. */
static inline uint64_t tiny_return(struct tiny *t, uint64_t address)
{
	static const uint8_t x86_call[] = {0xe8, 0, 0, 0, 0};
	static const uint32_t aarch64_call = 0x94000000;

	if (t->arch->id == ARCH_X86_64)
		tiny_code(t, address - sizeof(x86_call), x86_call, sizeof(x86_call));
	else
		tiny_code(t, address - 4, &aarch64_call, 4);
	return address;
}

/* Stands at the address with sp at the stack's word `sp`; every other register is unknown. */
static inline void tiny_stand(struct tiny *t, uint64_t pc, unsigned sp, bool exact)
{
	t->walk.regs = (struct regs){.pc = pc};
	regs_put(&t->walk.regs, t->arch->dwarf_sp, TINY_STACK + 8 * sp);
	t->walk.exact = exact;
	t->walk.sp_is_bound = false;
	t->out.len = 0;
	t->out.end = STACK_COMPLETE;
	t->out.error[0] = '\0';
	assert_true(vec_push(&t->out, (struct raw_frame){.pc = pc}));
}

/* From now on the image is what it is. */
static inline void tiny_load(struct tiny *t)
{
	struct mem_copy image = {
		.start = TINY_BASE, .len = TINY_IMAGE_LEN, .region_end = TINY_BASE + TINY_IMAGE_LEN, .data = t->image};

	if (t->target)
		return;
	assert_true(TINY_EH_FRAME_AT + t->eh_frame.len < TINY_SHDRS_AT);
	memcpy(t->image + TINY_EH_FRAME_AT, t->eh_frame.data, t->eh_frame.len);
	assert_true(vec_push(&t->snap->images, image));
	t->target = target_open_saved(t->snap);
	assert_non_null(t->target);
	assert_int_equal(target_open_files(t->target, NULL, NULL), 0);
	t->walk.modules = t->target->modules;
}

static inline bool tiny_step(struct tiny *t, struct caller *out)
{
	tiny_load(t);
	return step_frame(&t->walk, out);
}

#endif
