/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <ucontext.h>

#include "arch/arch.h"

static const struct arch *const archs[] = {&arch_x86_64, &arch_aarch64, &arch_i386, &arch_arm};
enum { NARCHS = 4 };

static void test_lookup(void **state)
{
	assert_ptr_equal(arch_by_id(ARCH_X86_64), &arch_x86_64);
	assert_ptr_equal(arch_by_id(ARCH_AARCH64), &arch_aarch64);
	assert_null(arch_by_id(0));
	assert_null(arch_by_id(99));
	assert_ptr_equal(arch_by_machine(EM_X86_64), &arch_x86_64);
	assert_ptr_equal(arch_by_machine(EM_AARCH64), &arch_aarch64);
	assert_ptr_equal(arch_by_machine(EM_386), &arch_i386);
	assert_ptr_equal(arch_by_id(ARCH_ARM), &arch_arm);
	assert_null(arch_by_machine(EM_RISCV));
}

static void test_tables_fit(void **state)
{
	for (size_t i = 0; i < NARCHS; i++) {
		const struct arch *a = archs[i];

		assert_true(a->nuser_regs <= ARCH_MAX_USER_REGS);
		assert_true(a->ndwarf_regs <= ARCH_MAX_DWARF_REGS);
		assert_true(a->dwarf_ra < a->ndwarf_regs);
		for (unsigned r = 0; r < a->nuser_regs; r++) {
			int dwarf = a->user_to_dwarf[r];

			assert_non_null(a->user_reg_names[r]);
			assert_true(dwarf < (int)a->ndwarf_regs);
			if (dwarf != ARCH_NO_REG)
				assert_string_equal(a->user_reg_names[r], a->dwarf_reg_names[dwarf]);
		}
		assert_int_equal(a->user_to_dwarf[a->user_sp], a->dwarf_sp);
		assert_int_equal(a->user_to_dwarf[a->user_pc], ARCH_NO_REG);
		assert_true(a->sigframe_offset[a->dwarf_sp] > 0);
		assert_true(a->sigframe_offset[a->dwarf_fp] > 0);
	}
	assert_string_equal(arch_x86_64.user_reg_names[arch_x86_64.user_pc], "rip");
	assert_string_equal(arch_x86_64.user_reg_names[arch_x86_64.user_syscall_args[3]], "r10");
	assert_string_equal(arch_aarch64.user_reg_names[arch_aarch64.user_pc], "pc");
	assert_string_equal(arch_aarch64.user_reg_names[arch_aarch64.user_syscall_nr], "x8");
}

/* Registers of 32-bit programs are in those of the processor; what /proc tells, in its pc and sp. */
static void test_narrow_registers(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		const struct arch *wide = archs[i], *narrow = wide->narrow;
		struct user_regs regs = {.valid = (UINT64_C(1) << wide->nuser_regs) - 1}, out;
		uint64_t pc_and_sp = UINT64_C(1) << wide->user_pc | UINT64_C(1) << wide->user_sp;

		for (unsigned r = 0; r < wide->nuser_regs; r++)
			regs.v[r] = UINT64_C(0xdead00000000) + 100 + r;
		arch_narrow_registers(narrow, wide, &regs, &out);
		for (unsigned r = 0; r < narrow->nuser_regs; r++) {
			assert_int_equal(out.valid >> r & 1, narrow->from_wide[r] != ARCH_NO_REG);
			if (narrow->from_wide[r] != ARCH_NO_REG)
				assert_int_equal(out.v[r], 100 + narrow->from_wide[r]);
		}
		regs.valid = pc_and_sp;
		arch_narrow_registers(narrow, wide, &regs, &out);
		assert_int_equal(out.valid, UINT64_C(1) << narrow->user_pc | UINT64_C(1) << narrow->user_sp);
		assert_int_equal(out.v[narrow->user_pc], 100 + wide->user_pc);
		assert_int_equal(out.v[narrow->user_sp], 100 + wide->user_sp);
		assert_null(narrow->narrow);
		assert_int_equal(narrow->word, 4);
	}
	assert_int_equal(arch_strip_code_pointer(&arch_arm, 0x10451), 0x10450); /* Thumb */
	assert_int_equal(arch_strip_code_pointer(&arch_i386, 0x10451), 0x10451);
}

static void test_to_dwarf(void **state)
{
	for (size_t i = 0; i < NARCHS; i++) {
		const struct arch *a = archs[i];
		struct user_regs user = {0};
		struct regs regs;

		for (unsigned r = 0; r < a->nuser_regs; r++)
			user.v[r] = 1000 + r;
		user.valid = UINT64_C(1) << a->user_pc | UINT64_C(1) << a->user_sp;
		assert_true(arch_to_dwarf(a, &user, &regs));
		assert_int_equal(regs.pc, 1000 + a->user_pc);
		assert_int_equal(regs.r[a->dwarf_sp], 1000 + a->user_sp);
		assert_true(regs_has(&regs, a->dwarf_sp));
		assert_false(regs_has(&regs, a->dwarf_fp));
		user.valid = (UINT64_C(1) << a->nuser_regs) - 1;
		assert_true(arch_to_dwarf(a, &user, &regs));
		assert_true(regs_has(&regs, a->dwarf_fp));
		assert_int_equal(regs_has(&regs, a->dwarf_ra), a->ra_in_register);
		user.valid &= ~(UINT64_C(1) << a->user_sp);
		assert_false(arch_to_dwarf(a, &user, &regs));
		user.valid = UINT64_C(1) << a->user_sp;
		assert_false(arch_to_dwarf(a, &user, &regs));
	}
}

static void test_sigreturn(void **state)
{
	static const uint8_t x86[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x90};
	static const uint8_t x86_short[] = {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
	static const uint8_t i386[] = {0x58, 0xb8, 0x77, 0x00, 0x00, 0x00, 0xcd, 0x80};
	static const uint8_t thumb[] = {0x4f, 0xf0, 0x77, 0x07, 0x00, 0xdf};
	static const uint8_t arm[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};

	assert_true(arch_is_sigreturn(&arch_x86_64, x86, sizeof(x86)));
	assert_true(arch_is_sigreturn(&arch_x86_64, x86_short, sizeof(x86_short)));
	assert_false(arch_is_sigreturn(&arch_x86_64, x86, 8));
	assert_false(arch_is_sigreturn(&arch_x86_64, x86 + 1, sizeof(x86) - 1));
	assert_false(arch_is_sigreturn(&arch_x86_64, NULL, 0));
	assert_true(arch_is_sigreturn(&arch_aarch64, arm, sizeof(arm)));
	assert_false(arch_is_sigreturn(&arch_aarch64, x86, sizeof(x86)));
	assert_int_equal(arch_find_sigreturn(&arch_i386, i386, sizeof(i386)), 1);
	assert_int_equal(arch_i386.sigframe_pc_offset - arch_i386.sigreturn_shift[1], 4 + 14 * 4);
	assert_int_equal(arch_find_sigreturn(&arch_arm, thumb, sizeof(thumb)), 4);
	assert_int_equal(arch_arm.sigframe_pc_offset - arch_arm.sigreturn_shift[4], 20 + 12 + 15 * 4);
	assert_int_equal(arch_find_sigreturn(&arch_arm, thumb, 5), -1);
}

static void test_strip(void **state)
{
	assert_true(arch_strip_code_pointer(&arch_x86_64, 0xffffffff81000000) == 0xffffffff81000000);
	assert_true(arch_strip_code_pointer(&arch_aarch64, 0x0000aaaabbbbcccc) == 0x0000aaaabbbbcccc);
	assert_true(arch_strip_code_pointer(&arch_aarch64, 0xff2aaaaabbbbcccc) == 0x0000aaaabbbbcccc);
	assert_true(arch_strip_code_pointer(&arch_aarch64, 0x00faffc012345678) == 0xffffffc012345678);
}

static void test_syscalls(void **state)
{
	const struct syscall_info *info = arch_syscall(&arch_x86_64, 202);

	assert_string_equal(info->name, "futex");
	assert_string_equal(info->args, "uaddr,op,val,utime,uaddr2,val3");
	assert_string_equal(arch_syscall(&arch_aarch64, 98)->name, "futex");
	assert_string_equal(arch_syscall(&arch_aarch64, 22)->name, "epoll_pwait");
	assert_string_equal(arch_syscall(&arch_x86_64, 34)->args, "");
	assert_null(arch_syscall(&arch_x86_64, -1));
	assert_null(arch_syscall(&arch_x86_64, INT64_MAX));
	assert_null(arch_syscall(&arch_aarch64, 245)); /* a hole in the list */
	for (size_t i = 0; i < NARCHS; i++)
		for (unsigned nr = 0; nr < archs[i]->nsyscalls; nr++) {
			info = arch_syscall(archs[i], nr);
			assert_true(!info || !info->args || !strstr(info->args, ",,"));
		}
}

/* The tables against the headers of the machine that runs the test. */
static void test_host(void **state)
{
	const struct arch *host = arch_host();

	assert_string_equal(arch_syscall(host, SYS_futex)->name, "futex");
	assert_string_equal(arch_syscall(host, SYS_read)->name, "read");
	assert_string_equal(arch_syscall(host, SYS_rt_sigreturn)->name, "rt_sigreturn");
	assert_string_equal(arch_syscall(host, SYS_clone3)->name, "clone3");
#ifdef __x86_64__
	assert_ptr_equal(host, &arch_x86_64);
	assert_int_equal(host->nuser_regs * 8, sizeof(struct user_regs_struct));
#define AT(name) assert_string_equal(host->user_reg_names[offsetof(struct user_regs_struct, name) / 8], #name)
	AT(r15), AT(rbp), AT(rbx), AT(r8), AT(rax), AT(rdi), AT(orig_rax), AT(rip), AT(rsp), AT(fs_base), AT(gs);
#undef AT
#define SAVED(dwarf, greg) \
	assert_int_equal(host->sigframe_offset[dwarf], offsetof(ucontext_t, uc_mcontext.gregs[greg]))
	SAVED(0, REG_RAX), SAVED(1, REG_RDX), SAVED(2, REG_RCX), SAVED(3, REG_RBX), SAVED(4, REG_RSI);
	SAVED(5, REG_RDI), SAVED(6, REG_RBP), SAVED(7, REG_RSP), SAVED(8, REG_R8), SAVED(15, REG_R15);
	SAVED(16, REG_RIP);
#undef SAVED
	assert_int_equal(host->sigframe_pc_offset, offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]));
#else
	const size_t ucontext = sizeof(siginfo_t);

	assert_ptr_equal(host, &arch_aarch64);
	assert_int_equal(host->nuser_regs * 8, sizeof(struct user_regs_struct));
	for (unsigned r = 0; r <= 30; r++)
		assert_int_equal(host->sigframe_offset[r], ucontext + offsetof(ucontext_t, uc_mcontext.regs) + 8 * r);
	assert_int_equal(host->sigframe_offset[host->dwarf_sp], ucontext + offsetof(ucontext_t, uc_mcontext.sp));
	assert_int_equal(host->sigframe_pc_offset, ucontext + offsetof(ucontext_t, uc_mcontext.pc));
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_tables_fit),
		cmocka_unit_test(test_narrow_registers),
		cmocka_unit_test(test_to_dwarf),
		cmocka_unit_test(test_sigreturn),
		cmocka_unit_test(test_strip),
		cmocka_unit_test(test_syscalls),
		cmocka_unit_test(test_host),
	};

	return cmocka_run_group_tests_name("arch", tests, NULL, NULL);
}
