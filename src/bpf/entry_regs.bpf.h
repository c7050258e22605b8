/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_ENTRY_REGS_H
#define STAKEOUT_BPF_ENTRY_REGS_H

#include "bpf/task_record.h"

/* The user registers as the kernel saved them when it was entered. */

#if defined(__TARGET_ARCH_x86)
enum { ENTRY_REGS_WORDS = TASK_RECORD_REGS_X86_64, REG_ORIG_AX = 15, REG_DI = 14 };
#elif defined(__TARGET_ARCH_arm64)
enum { ENTRY_REGS_WORDS = TASK_RECORD_REGS_AARCH64 };
#else
#error "say which words of pt_regs to copy"
#endif

/* The system call that they tell of; the record has them already. */
static void take_syscall(struct pt_regs *regs, struct task_record *record)
{
#if defined(__TARGET_ARCH_x86)
	record->syscall_nr = (__s64)record->regs[REG_ORIG_AX];
	record->syscall_arg0 = record->regs[REG_DI];
#else
	record->syscall_nr = (__s32)BPF_CORE_READ_BITFIELD_PROBED((struct pt_regs___arm64_entry *)regs, syscallno);
	record->syscall_arg0 = BPF_CORE_READ((struct pt_regs___arm64_entry *)regs, orig_x0);
#endif
}

#endif
