/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_KERNEL_SP_H
#define STAKEOUT_BPF_KERNEL_SP_H

/* Where the kernel stack of a thread ends that has left its CPU. */
static __u64 kernel_sp(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread.sp;
#else
	return BPF_CORE_READ((struct task_struct___arm64 *)task, thread.cpu_context.sp);
#endif
}

#endif
