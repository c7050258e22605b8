/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_TASK_H
#define STAKEOUT_BPF_TASK_H

/*
 * What the programs read of a thread. Tasks come from BTF, so that their fields are read directly: a helper call for
 * each would double what a switch costs. But where the verifier sees a pointer being read of a task it searches all of the
 * kernel's BTF, several times, to find out whether it may be trusted: half a millisecond each time that a program is
 * loaded. Where time to start counts more, pointers are read by BPF_CORE_READ().
 */

enum { PF_EXITING = 0x00000004, PF_KTHREAD = 0x00200000, MAX_DEPTH = 32 /* of pid namespaces */ };

/* An integer with the size and the sign that the running kernel gives it. `from` is a pointer that BTF knows. */
#define FIELD(from, field) BPF_CORE_READ_BITFIELD(from, field)

/* Set by the loader: its own pid namespace; 0: the first one, which has all processes. */
const volatile __u32 ns_inum;

/* So that numbers[0] is that of the level. */
static const struct pid *shift(const struct pid *pid, __u32 level)
{
	return (const void *)pid + level * bpf_core_field_size(pid->numbers[0]);
}

/* The namespace that numbers[0] is of. */
static struct pid_namespace *namespace_of(const struct pid *shifted)
{
	return BPF_CORE_READ(shifted, numbers[0].ns);
}

#ifdef LOADER_IS_CURRENT
/*
 * By its place. When the kernel loads a program by itself its cache of types has one place for pid and pid_namespace: that the program names
 * only one of them saves a millisecond and a half.
 */
static __u32 is_loaders(const struct pid *shifted)
{
	struct task_struct *loader = bpf_get_current_task_btf();
	const struct pid *pid = BPF_CORE_READ(loader, thread_pid);

	return namespace_of(shifted) == namespace_of(shift(pid, BPF_CORE_READ(pid, level)));
}
#else
static __u32 is_loaders(const struct pid *shifted)
{
	const struct pid_namespace *ns = namespace_of(shifted);

	return BPF_CORE_READ_BITFIELD_PROBED(ns, ns.inum) == ns_inum;
}
#endif

/* The number in the loader's pid namespace, which is not the first one; 0 when there is none. */
static __u32 number_in(const struct pid *pid, __u32 depth)
{
	const struct pid *shifted;

	for (__u32 i = 1; i <= MAX_DEPTH && i <= depth; i++) {
		shifted = shift(pid, i);
		if (is_loaders(shifted))
			return BPF_CORE_READ_BITFIELD_PROBED(shifted, numbers[0].nr);
	}
	return 0;
}

/* A thread's number in the loader's pid namespace; 0 when it is not in it, or can no longer be told. */
static __u32 number_of(struct task_struct *task)
{
	struct pid *pid;

	if (!ns_inum)
		return task->pid;
	pid = task->thread_pid;
	return pid ? number_in(pid, pid->level) : 0;
}

static __u32 process_of(struct task_struct *task)
{
	return ns_inum ? number_of(task->group_leader) : task->tgid;
}

static __u32 is_on_cpu(struct task_struct *task)
{
	return FIELD(task, on_cpu) != 0;
}

static __u32 state_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return ((struct task_struct___before_5_14 *)task)->state;
}

#endif
