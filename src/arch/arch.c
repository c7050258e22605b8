/* SPDX-License-Identifier: MIT */
#include "arch/arch.h"

#include <string.h>

static const struct arch *const all[] = {&arch_x86_64, &arch_aarch64, &arch_i386, &arch_arm};

const struct arch *arch_host(void)
{
#if defined(__x86_64__)
	return &arch_x86_64;
#elif defined(__aarch64__)
	return &arch_aarch64;
#else
#error "this processor is not supported: see the list at the top of arch/arch.h"
#endif
}

const struct arch *arch_by_id(enum arch_id id)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i]->id == id)
			return all[i];
	return NULL;
}

const struct arch *arch_by_machine(uint16_t machine)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i]->elf_machine == machine)
			return all[i];
	return NULL;
}

bool arch_to_dwarf(const struct arch *arch, const struct user_regs *user, struct regs *out)
{
	uint64_t needed = UINT64_C(1) << arch->user_pc | UINT64_C(1) << arch->user_sp;

	*out = (struct regs){.pc = user->v[arch->user_pc]};
	for (unsigned i = 0; i < arch->nuser_regs; i++)
		if ((user->valid >> i & 1) && arch->user_to_dwarf[i] != ARCH_NO_REG)
			regs_put(out, (unsigned)arch->user_to_dwarf[i], user->v[i]);
	return (user->valid & needed) == needed;
}

int arch_find_sigreturn(const struct arch *arch, const uint8_t *code, size_t len)
{
	for (int i = 0; arch->sigreturn_code[i]; i++)
		if (len >= arch->sigreturn_len[i] && memcmp(code, arch->sigreturn_code[i], arch->sigreturn_len[i]) == 0)
			return i;
	return -1;
}

bool arch_is_sigreturn(const struct arch *arch, const uint8_t *code, size_t len)
{
	return arch_find_sigreturn(arch, code, len) >= 0;
}

/*
 * Linux gives user code at most 48 address bits unless it asks for more by a hint, so what lies above them in a
 * return address is a signature or a tag. Bit 55 tells the kernel's half of the address space from the user's.
 */
static uint64_t strip_aarch64(uint64_t address)
{
	const uint64_t high = ~UINT64_C(0) << 48;

	return address >> 55 & 1 ? address | high : address & ~high;
}

uint64_t arch_strip_code_pointer(const struct arch *arch, uint64_t address)
{
	if (arch->id == ARCH_ARM)
		return address & ~UINT64_C(1);
	return arch->id == ARCH_AARCH64 ? strip_aarch64(address) : address;
}

const struct arch *arch_of_mode(const struct arch *arch, uint64_t mode)
{
	return arch->narrow && (mode & arch->narrow_mask) == arch->narrow_value ? arch->narrow : arch;
}

/* /proc tells pc and sp alone, wherever the 32-bit program has the latter. */
void arch_narrow_registers(const struct arch *narrow, const struct arch *wide, const struct user_regs *regs,
			   struct user_regs *out)
{
	*out = (struct user_regs){0};
	for (unsigned i = 0; i < narrow->nuser_regs; i++) {
		int from = narrow->from_wide[i];

		if (i == narrow->user_sp && from != ARCH_NO_REG && !(regs->valid >> from & 1))
			from = wide->user_sp;
		if (from == ARCH_NO_REG || !(regs->valid >> from & 1))
			continue;
		out->v[i] = (uint32_t)regs->v[from];
		out->valid |= UINT64_C(1) << i;
	}
}

const struct syscall_info *arch_syscall(const struct arch *arch, int64_t nr)
{
	if (nr < 0 || (uint64_t)nr >= arch->nsyscalls || !arch->syscalls[nr].name)
		return NULL;
	return &arch->syscalls[nr];
}

bool arch_is_futex(const struct arch *arch, int64_t nr)
{
	const struct syscall_info *call = arch_syscall(arch, nr);

	return call && (strcmp(call->name, "futex") == 0 || strcmp(call->name, "futex_time64") == 0);
}

bool arch_is_restart(const struct arch *arch, int64_t nr)
{
	const struct syscall_info *call = arch_syscall(arch, nr);

	return call && strcmp(call->name, "restart_syscall") == 0;
}
