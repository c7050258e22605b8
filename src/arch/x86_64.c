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

/* The 32-bit one: DWARF numbers, and struct user_regs_struct of it in its order: X(name, DWARF number, that of 64 bits). */
enum { EAX, ECX, EDX, EBX, ESP, EBP, ESI, EDI, EIP, I386_NDWARF };

/* clang-format off */
#define I386_REGS(X) \
	X(ebx, EBX, USER_rbx) X(ecx, ECX, USER_rcx) X(edx, EDX, USER_rdx) X(esi, ESI, USER_rsi) X(edi, EDI, USER_rdi) \
	X(ebp, EBP, USER_rbp) X(eax, EAX, USER_rax) X(ds, ARCH_NO_REG, USER_ds) X(es, ARCH_NO_REG, USER_es) \
	X(fs, ARCH_NO_REG, USER_fs) X(gs, ARCH_NO_REG, USER_gs) X(orig_eax, ARCH_NO_REG, USER_orig_rax) \
	X(eip, ARCH_NO_REG, USER_rip) X(cs, ARCH_NO_REG, USER_cs) X(eflags, ARCH_NO_REG, USER_eflags) X(esp, ESP, USER_rsp) \
	X(ss, ARCH_NO_REG, USER_ss)

#define X(name, dwarf, wide) I386_##name,
enum { I386_REGS(X) I386_NUSER };
#undef X

#define X(name, dwarf, wide) #name,
static const char *const i386_user_reg_names[] = {I386_REGS(X)};
#undef X

#define X(name, dwarf, wide) dwarf,
static const int8_t i386_user_to_dwarf[] = {I386_REGS(X)};
#undef X

#define X(name, dwarf, wide) wide,
static const int8_t i386_from_wide[] = {I386_REGS(X)};
#undef X

static const char *const i386_dwarf_reg_names[I386_NDWARF] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"};

/* mov $173, %eax; int $0x80; for handlers without a siginfo pop %eax; mov $119, %eax; int $0x80 */
static const uint8_t i386_sigreturn[] = {0xb8, 0xad, 0x00, 0x00, 0x00, 0xcd, 0x80};
static const uint8_t i386_old_sigreturn[] = {0x58, 0xb8, 0x77, 0x00, 0x00, 0x00, 0xcd, 0x80};
static const uint8_t *const i386_sigreturn_code[] = {i386_sigreturn, i386_old_sigreturn, NULL};
static const uint8_t i386_sigreturn_len[] = {sizeof(i386_sigreturn), sizeof(i386_old_sigreturn)};
static const uint8_t i386_sigreturn_shift[] = {0, 12 + 128 + 20 - 4}; /* the registers are behind the number */

/*
 * At the trampoline the return address has been popped: sp points at the signal's number, two pointers, a siginfo of 128 bytes
 * and the ucontext, whose mcontext begins at 20 with four segments.
 */
#define I386_GREG(i) (12 + 128 + 20 + 4 * (i))
static const int16_t i386_sigframe_offset[I386_NDWARF] = {
	[EDI] = I386_GREG(4), [ESI] = I386_GREG(5), [EBP] = I386_GREG(6), [ESP] = I386_GREG(7), [EBX] = I386_GREG(8),
	[EDX] = I386_GREG(9), [ECX] = I386_GREG(10), [EAX] = I386_GREG(11), [EIP] = -1,
};
/* clang-format on */

const struct arch arch_i386 = {
	.id = ARCH_I386,
	.name = "i386",
	.elf_machine = EM_386,
	.word = 4,
	.nuser_regs = I386_NUSER,
	.user_reg_names = i386_user_reg_names,
	.user_to_dwarf = i386_user_to_dwarf,
	.from_wide = i386_from_wide,
	.user_pc = I386_eip,
	.user_sp = I386_esp,
	.user_syscall_nr = I386_orig_eax,
	.user_syscall_result = I386_eax,
	.user_syscall_args = {I386_ebx, I386_ecx, I386_edx, I386_esi, I386_edi, I386_ebp},
	.ndwarf_regs = I386_NDWARF,
	.dwarf_sp = ESP,
	.dwarf_fp = EBP,
	.dwarf_ra = EIP,
	.dwarf_link = EIP,
	.fp_gives_sp = true,
	.callee_saved = BIT(EBX) | BIT(EBP) | BIT(ESI) | BIT(EDI),
	.dwarf_reg_names = i386_dwarf_reg_names,
	.sigreturn_code = i386_sigreturn_code,
	.sigreturn_len = i386_sigreturn_len,
	.sigreturn_shift = i386_sigreturn_shift,
	.sigframe_offset = i386_sigframe_offset,
	.sigframe_pc_offset = I386_GREG(14),
	.sigframe_context_offset = 12 + 128,
	.syscalls = narrow_syscalls,
	.nsyscalls = sizeof(narrow_syscalls) / sizeof(narrow_syscalls[0]),
};

const struct arch arch_x86_64 = {
	.id = ARCH_X86_64,
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.word = 8,
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
	.narrow = &arch_i386,
	.user_mode = USER_cs,
	.narrow_mask = 0xffff,
	.narrow_value = 0x23,
};
