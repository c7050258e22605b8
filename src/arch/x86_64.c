/* SPDX-License-Identifier: MIT */
#include <elf.h>

#include "arch/arch.h"

/* clang-format off */

/* DWARF numbers of the System V ABI. */
enum {
	RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, RETURN_ADDRESS, NDWARF
};

/*
 * struct user_regs_struct, in its order: X(name, DWARF number). The pc has none: column 16 of the CFI is the caller's
 * pc, which is not known before the first step.
 */
#define USER_REGS(X) \
	X(r15, R15) X(r14, R14) X(r13, R13) X(r12, R12) X(rbp, RBP) X(rbx, RBX) X(r11, R11) X(r10, R10) \
	X(r9, R9) X(r8, R8) X(rax, RAX) X(rcx, RCX) X(rdx, RDX) X(rsi, RSI) X(rdi, RDI) \
	X(orig_rax, ARCH_NO_REG) X(rip, ARCH_NO_REG) X(cs, ARCH_NO_REG) X(eflags, ARCH_NO_REG) \
	X(rsp, RSP) X(ss, ARCH_NO_REG) X(fs_base, ARCH_NO_REG) X(gs_base, ARCH_NO_REG) \
	X(ds, ARCH_NO_REG) X(es, ARCH_NO_REG) X(fs, ARCH_NO_REG) X(gs, ARCH_NO_REG)

#define X(name, dwarf) USER_##name,
enum { USER_REGS(X) NUSER };
#undef X

#define X(name, dwarf) #name,
static const char *const user_reg_names[] = {USER_REGS(X)};
#undef X

#define X(name, dwarf) dwarf,
static const int8_t user_to_dwarf[] = {USER_REGS(X)};
#undef X

static const char *const dwarf_reg_names[NDWARF] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
};

/* mov $15, %rax; syscall, with the long and the short form of mov */
static const uint8_t sigreturn_long[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
static const uint8_t sigreturn_short[] = {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
static const uint8_t *const sigreturn_code[] = {sigreturn_long, sigreturn_short, NULL};
static const uint8_t sigreturn_len[] = {sizeof(sigreturn_long), sizeof(sigreturn_short)};

/* At the trampoline sp points at the ucontext; its saved registers begin at 40. */
#define GREG(i) (40 + 8 * (i))
static const int16_t sigframe_offset[NDWARF] = {
	[R8] = GREG(0), [R9] = GREG(1), [R10] = GREG(2), [R11] = GREG(3),
	[R12] = GREG(4), [R13] = GREG(5), [R14] = GREG(6), [R15] = GREG(7),
	[RDI] = GREG(8), [RSI] = GREG(9), [RBP] = GREG(10), [RBX] = GREG(11),
	[RDX] = GREG(12), [RAX] = GREG(13), [RCX] = GREG(14), [RSP] = GREG(15),
	[RETURN_ADDRESS] = GREG(16),
};

#define SYSCALL(nr, syscall, params) [nr] = {.name = #syscall, .args = params},
static const struct syscall_info syscalls[] = {
#include "arch/syscalls_x86_64.h"
};
static const struct syscall_info narrow_syscalls[] = {
#include "arch/syscalls_i386.h"
};

/* clang-format on */

#define BIT(reg) (UINT64_C(1) << (reg))

static const struct arch i386 = {
	.name = "i386",
	.elf_machine = EM_386,
	.user_syscall_args = {USER_rbx, USER_rcx, USER_rdx, USER_rsi, USER_rdi, USER_rbp},
	.syscalls = narrow_syscalls,
	.nsyscalls = sizeof(narrow_syscalls) / sizeof(narrow_syscalls[0]),
};

const struct arch arch_x86_64 = {
	.id = ARCH_X86_64,
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.nuser_regs = NUSER,
	.user_reg_names = user_reg_names,
	.user_to_dwarf = user_to_dwarf,
	.user_pc = USER_rip,
	.user_sp = USER_rsp,
	.user_syscall_nr = USER_orig_rax,
	.user_syscall_result = USER_rax,
	.user_syscall_args = {USER_rdi, USER_rsi, USER_rdx, USER_r10, USER_r8, USER_r9},
	.ndwarf_regs = NDWARF,
	.dwarf_sp = RSP,
	.dwarf_fp = RBP,
	.dwarf_ra = RETURN_ADDRESS,
	.ra_in_register = false,
	.fp_gives_sp = true,
	.callee_saved = BIT(RBX) | BIT(RBP) | BIT(R12) | BIT(R13) | BIT(R14) | BIT(R15),
	.dwarf_reg_names = dwarf_reg_names,
	.sigreturn_code = sigreturn_code,
	.sigreturn_len = sigreturn_len,
	.dwarf_link = RDI,
	.dwarf_go = R14,
	.sigframe_offset = sigframe_offset,
	.sigframe_pc_offset = GREG(16),
	.syscalls = syscalls,
	.nsyscalls = sizeof(syscalls) / sizeof(syscalls[0]),
	.narrow = &i386,
	.user_mode = USER_cs,
	.narrow_mask = 0xffff,
	.narrow_value = 0x23,
};
