/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ARCH_ARCH_H
#define STAKEOUT_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What the program has to know about a processor, as data. Both architectures are built on every host, so that a
 * snapshot of one can be replayed on the other.
 *
 * To add an architecture: one file with a `struct arch`, its syscall list, a line in arch.c, the registers that
 * the BPF object copies (src/bpf/task_iter.bpf.c), and a VM configuration in tests/vm.
 */

enum arch_id { /* append-only: written to saved snapshots */
	ARCH_X86_64 = 1,
	ARCH_AARCH64 = 2,
	ARCH_I386 = 3, /* 32-bit programs on the first two */
	ARCH_ARM = 4,
};

enum {
	ARCH_MAX_USER_REGS = 40,
	ARCH_MAX_DWARF_REGS = 40,
	ARCH_NO_REG = -1,
};

/* The registers as the kernel hands them out (NT_PRSTATUS order); `valid` has bit i set when v[i] is known. */
struct user_regs {
	uint64_t v[ARCH_MAX_USER_REGS];
	uint64_t valid;
};

/* The registers as CFI names them (DWARF numbers), and the program counter, which is always known. */
struct regs {
	uint64_t r[ARCH_MAX_DWARF_REGS];
	uint64_t valid;
	uint64_t pc;
};

static inline bool regs_has(const struct regs *regs, unsigned reg)
{
	return reg < ARCH_MAX_DWARF_REGS && (regs->valid >> reg & 1);
}

static inline void regs_put(struct regs *regs, unsigned reg, uint64_t value)
{
	regs->r[reg] = value;
	regs->valid |= UINT64_C(1) << reg;
}

struct syscall_info {
	const char *name;
	const char *args; /* parameter names, comma-separated; NULL when they are not known */
};

struct arch {
	enum arch_id id;
	const char *name;
	uint16_t elf_machine;
	uint8_t word; /* bytes of a pointer */

	/* user_regs: names in NT_PRSTATUS order, and where the interesting ones are */
	unsigned nuser_regs;
	const char *const *user_reg_names;
	const int8_t *user_to_dwarf; /* DWARF number of each user register, or ARCH_NO_REG */
	uint8_t user_pc, user_sp, user_syscall_nr, user_syscall_result;
	uint8_t user_syscall_args[6];

	/* DWARF registers */
	unsigned ndwarf_regs;
	uint8_t dwarf_sp, dwarf_fp, dwarf_ra; /* dwarf_ra: CFI's usual return address column */
	uint8_t dwarf_link; /* where a return address may be that is not on the stack: LR, or rdi in glibc's vfork() of x86_64 */
	uint8_t dwarf_go; /* where Go keeps the goroutine that runs */
	bool fp_gives_sp;		      /* a frame record is the top of its frame: the caller's sp is behind it */
	bool ra_in_register;		      /* a leaf function's return address is in dwarf_ra (LR) */
	uint64_t callee_saved;		      /* mask: unspecified rule means "same value" */
	const char *const *dwarf_reg_names;

	/* The signal trampoline: its code, and where in the frame at SP the interrupted registers lie */
	const uint8_t *const *sigreturn_code; /* NULL-terminated list */
	const uint8_t *sigreturn_len;
	const uint8_t *sigreturn_shift; /* how much nearer to SP they are with each of these; NULL: they are not */
	const int16_t *sigframe_offset; /* per DWARF register, -1 when it is not saved */
	int16_t sigframe_pc_offset;
	int16_t sigframe_context_offset; /* of struct ucontext */

	/* System calls */
	const struct syscall_info *syscalls;
	unsigned nsyscalls;

	/* 32-bit programs */
	const struct arch *narrow; /* NULL: it is that of such programs itself, and then */
	const int8_t *from_wide;   /* for each user register, which of the 64-bit processor's it is, or ARCH_NO_REG */
	uint8_t user_mode;       /* the user register that tells, */
	uint64_t narrow_mask;    /* and what it then holds */
	uint64_t narrow_value;
};

extern const struct arch arch_x86_64;
extern const struct arch arch_aarch64;
extern const struct arch arch_i386;
extern const struct arch arch_arm;

const struct arch *arch_host(void);
const struct arch *arch_by_id(enum arch_id id);	      /* NULL when unknown */
const struct arch *arch_by_machine(uint16_t machine); /* ELF e_machine; NULL when unknown */

/* Names the user registers by their DWARF numbers. False when pc or sp is missing. */
bool arch_to_dwarf(const struct arch *arch, const struct user_regs *user, struct regs *out);

/* Which of the architecture's sequences for returning from a signal `code` starts with; -1: none. */
int arch_find_sigreturn(const struct arch *arch, const uint8_t *code, size_t len);
bool arch_is_sigreturn(const struct arch *arch, const uint8_t *code, size_t len);

/* Clears pointer-authentication and tag bits of a code address, or that of Thumb (the identity on x86). */
uint64_t arch_strip_code_pointer(const struct arch *arch, uint64_t address);

/* The architecture of code that runs with this in the register user_mode: arch, or arch->narrow. */
const struct arch *arch_of_mode(const struct arch *arch, uint64_t mode);

/* The registers of a 32-bit program, by those of the processor on which it runs (`wide`). */
void arch_narrow_registers(const struct arch *narrow, const struct arch *wide, const struct user_regs *regs,
			   struct user_regs *out);

/* NULL when the number is not known. */
const struct syscall_info *arch_syscall(const struct arch *arch, int64_t nr);

/* Whether it is the one that waits for a futex, whose address is its first argument and the operation its second. */
bool arch_is_futex(const struct arch *arch, int64_t nr);

/* Whether it goes on with one that had a time limit and was interrupted, whose arguments are still in the registers. */
bool arch_is_restart(const struct arch *arch, int64_t nr);

#endif
