/* SPDX-License-Identifier: MIT */
#include <elf.h>

#include "arch/arch.h"

/* clang-format off */

/* DWARF numbers of the ABI: x0 to x30 are 0 to 30, and 32 is reserved. */
enum { X0 = 0, X8 = 8, X19 = 19, FP = 29, LR = 30, SP = 31, ELR_MODE = 33, RA_SIGN_STATE = 34, NDWARF };

/* struct user_pt_regs: x0 to x30, sp, pc, pstate */
enum { USER_SP = 31, USER_PC, USER_PSTATE, NUSER };

#define X_NAMES \
	"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", \
	"x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30"

static const char *const user_reg_names[NUSER] = {
	X_NAMES, [USER_SP] = "sp", [USER_PC] = "pc", [USER_PSTATE] = "pstate",
};

static const char *const dwarf_reg_names[NDWARF] = {
	X_NAMES, [SP] = "sp", [ELR_MODE] = "elr_mode", [RA_SIGN_STATE] = "ra_sign_state",
};

static const int8_t user_to_dwarf[NUSER] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
	[USER_SP] = SP, [USER_PC] = ARCH_NO_REG, [USER_PSTATE] = ARCH_NO_REG,
};

/* mov x8, #139; svc #0 */
static const uint8_t sigreturn[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
static const uint8_t *const sigreturn_code[] = {sigreturn, NULL};
static const uint8_t sigreturn_len[] = {sizeof(sigreturn)};

/*
 * At the trampoline sp points at a siginfo of 128 bytes and the ucontext after it, whose mcontext begins at 176 with
 * the fault address; then come x0 to x30, sp and pc.
 */
#define SAVED(i) (128 + 176 + 8 + 8 * (i))
static const int16_t sigframe_offset[NDWARF] = {
	SAVED(0), SAVED(1), SAVED(2), SAVED(3), SAVED(4), SAVED(5), SAVED(6), SAVED(7),
	SAVED(8), SAVED(9), SAVED(10), SAVED(11), SAVED(12), SAVED(13), SAVED(14), SAVED(15),
	SAVED(16), SAVED(17), SAVED(18), SAVED(19), SAVED(20), SAVED(21), SAVED(22), SAVED(23),
	SAVED(24), SAVED(25), SAVED(26), SAVED(27), SAVED(28), SAVED(29), SAVED(30), SAVED(31),
	[SP + 1] = -1, [ELR_MODE] = -1, [RA_SIGN_STATE] = -1,
};

#define SYSCALL(nr, syscall, params) [nr] = {.name = #syscall, .args = params},
static const struct syscall_info syscalls[] = {
#include "arch/syscalls_aarch64.h"
};
static const struct syscall_info narrow_syscalls[] = {
#include "arch/syscalls_arm.h"
};

/* clang-format on */

/* The 32-bit one: struct pt_regs of it has r0 to r15, cpsr and what r0 was before the system call. */
enum { R4 = 4, R7 = 7, R11 = 11, ARM_SP = 13, ARM_LR, ARM_PC, ARM_CPSR, ORIG_R0, ARM_NUSER, ARM_NDWARF = ARM_PC + 1 };

/* clang-format off */
#define R_NAMES "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp", "lr", "pc"
static const char *const arm_user_reg_names[ARM_NUSER] = {R_NAMES, "cpsr", "orig_r0"};
static const char *const arm_dwarf_reg_names[ARM_NDWARF] = {R_NAMES};
static const int8_t arm_user_to_dwarf[ARM_NUSER] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, ARM_SP, ARM_LR, [ARM_PC] = ARCH_NO_REG, [ARM_CPSR] = ARCH_NO_REG,
	[ORIG_R0] = ARCH_NO_REG,
};
static const int8_t arm_from_wide[ARM_NUSER] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, ARM_SP, ARM_LR, [ARM_PC] = USER_PC, [ARM_CPSR] = USER_PSTATE,
	[ORIG_R0] = ARCH_NO_REG,
};

/* mov r7, #173; svc 0, in Thumb, in its wide form, and not; the same with 119, for handlers without a siginfo */
static const uint8_t arm_sigreturn_thumb[] = {0xad, 0x27, 0x00, 0xdf};
static const uint8_t arm_sigreturn_wide[] = {0x4f, 0xf0, 0xad, 0x07, 0x00, 0xdf};
static const uint8_t arm_sigreturn_plain[] = {0xad, 0x70, 0xa0, 0xe3, 0x00, 0x00, 0x00, 0xef};
static const uint8_t arm_old_sigreturn_thumb[] = {0x77, 0x27, 0x00, 0xdf};
static const uint8_t arm_old_sigreturn_wide[] = {0x4f, 0xf0, 0x77, 0x07, 0x00, 0xdf};
static const uint8_t arm_old_sigreturn_plain[] = {0x77, 0x70, 0xa0, 0xe3, 0x00, 0x00, 0x00, 0xef};
static const uint8_t *const arm_sigreturn_code[] = {
	arm_sigreturn_thumb, arm_sigreturn_wide, arm_sigreturn_plain,
	arm_old_sigreturn_thumb, arm_old_sigreturn_wide, arm_old_sigreturn_plain, NULL,
};
static const uint8_t arm_sigreturn_len[] = {
	sizeof(arm_sigreturn_thumb), sizeof(arm_sigreturn_wide), sizeof(arm_sigreturn_plain),
	sizeof(arm_old_sigreturn_thumb), sizeof(arm_old_sigreturn_wide), sizeof(arm_old_sigreturn_plain),
};
static const uint8_t arm_sigreturn_shift[] = {0, 0, 0, 128, 128, 128};

/* A siginfo of 128 bytes, then the ucontext: flags, link, the stack in 12, three words of the fault, and the registers. */
#define ARM_SAVED(i) (128 + 20 + 12 + 4 * (i))
static const int16_t arm_sigframe_offset[ARM_NDWARF] = {
	ARM_SAVED(0), ARM_SAVED(1), ARM_SAVED(2), ARM_SAVED(3), ARM_SAVED(4), ARM_SAVED(5), ARM_SAVED(6), ARM_SAVED(7),
	ARM_SAVED(8), ARM_SAVED(9), ARM_SAVED(10), ARM_SAVED(11), ARM_SAVED(12), ARM_SAVED(13), ARM_SAVED(14), [ARM_PC] = -1,
};
/* clang-format on */

const struct arch arch_arm = {
	.id = ARCH_ARM,
	.name = "arm",
	.elf_machine = EM_ARM,
	.word = 4,
	.nuser_regs = ARM_NUSER,
	.user_reg_names = arm_user_reg_names,
	.user_to_dwarf = arm_user_to_dwarf,
	.from_wide = arm_from_wide,
	.user_pc = ARM_PC,
	.user_sp = ARM_SP,
	.user_syscall_nr = R7,
	.user_syscall_result = 0,
	.user_syscall_args = {0, 1, 2, 3, 4, 5},
	.ndwarf_regs = ARM_NDWARF,
	.dwarf_sp = ARM_SP,
	.dwarf_fp = R11,
	.dwarf_ra = ARM_LR,
	.dwarf_link = ARM_LR,
	.ra_in_register = true,
	.callee_saved = ((UINT64_C(1) << (R11 - R4 + 1)) - 1) << R4,
	.dwarf_reg_names = arm_dwarf_reg_names,
	.sigreturn_code = arm_sigreturn_code,
	.sigreturn_len = arm_sigreturn_len,
	.sigreturn_shift = arm_sigreturn_shift,
	.sigframe_offset = arm_sigframe_offset,
	.sigframe_pc_offset = ARM_SAVED(15),
	.sigframe_context_offset = 128,
	.syscalls = narrow_syscalls,
	.nsyscalls = sizeof(narrow_syscalls) / sizeof(narrow_syscalls[0]),
};

const struct arch arch_aarch64 = {
	.id = ARCH_AARCH64,
	.name = "aarch64",
	.elf_machine = EM_AARCH64,
	.word = 8,
	.nuser_regs = NUSER,
	.user_reg_names = user_reg_names,
	.user_to_dwarf = user_to_dwarf,
	.user_pc = USER_PC,
	.user_sp = USER_SP,
	.user_syscall_nr = X8,
	.user_syscall_result = X0,
	.user_syscall_args = {0, 1, 2, 3, 4, 5},
	.ndwarf_regs = NDWARF,
	.dwarf_sp = SP,
	.dwarf_fp = FP,
	.dwarf_ra = LR,
	.ra_in_register = true,
	.callee_saved = ((UINT64_C(1) << (FP - X19 + 1)) - 1) << X19, /* x19 to x29 */
	.dwarf_reg_names = dwarf_reg_names,
	.sigreturn_code = sigreturn_code,
	.sigreturn_len = sigreturn_len,
	.dwarf_link = 30,
	.dwarf_go = 28,
	.sigframe_offset = sigframe_offset,
	.sigframe_pc_offset = SAVED(32),
	.sigframe_context_offset = 128,
	.syscalls = syscalls,
	.nsyscalls = sizeof(syscalls) / sizeof(syscalls[0]),
	.narrow = &arch_arm,
	.user_mode = USER_PSTATE,
	.narrow_mask = 0x10,
	.narrow_value = 0x10,
};
