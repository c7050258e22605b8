// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Pass 1 and pass 2 of a capture: writes a struct task_record for every thread of one process, or of all, without stopping or
 * waking any of them.
 */
#include "bpf/kernel_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "bpf/entry_regs.bpf.h"
#include "bpf/kernel_sp.bpf.h"
#include "bpf/left_cpu.bpf.h"
#define LOADER_IS_CURRENT
#include "bpf/task.bpf.h"
#include "bpf/task_record.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct task_pass pass; /* set by the reader before each */

/* There is only one reader: the skeleton is private to its process, which reads from one thread. */
static struct task_record record;
static __u64 kernel_stack[TASK_RECORD_KERNEL];

/* The innermost part of the memory that is the thread's kernel stack. */
enum { INNERMOST_WORDS = 128, INTERRUPTIBLE = 1 /* a state */ };
static __u64 innermost[INNERMOST_WORDS];

/* Set by the loader: bpf_loop() is there, as since Linux 5.17. An ordinary loop over so many words takes the kernel seconds to check. */
const volatile __u32 has_loops;

static struct cpu_turn turn_of(struct task_struct *task)
{
	return (struct cpu_turn){
		.arrived = task->sched_info.last_arrival,
		.ran = task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime,
		.policy = task->policy,
	};
}

static void take_off_cpu_time(struct task_struct *task)
{
	if (bpf_core_field_exists(task->sched_info.last_arrival))
		set_off_cpu_time(&record, turn_of(task), turn_of((struct task_struct *)bpf_get_current_task_btf()));
}

static void take_registers(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	record.user_regs = (__u64)regs;
	if (!regs || bpf_probe_read_kernel(record.regs, ENTRY_REGS_WORDS * sizeof(__u64), regs))
		return;
	record.flags |= TASK_HAS_REGS;
	record.altstack_start = task->sas_ss_sp;
	record.altstack_len = task->sas_ss_size;
	record.tid_address = (__u64)BPF_CORE_READ(task, clear_child_tid);
	take_syscall(regs, &record);
#if defined(__TARGET_ARCH_x86)
	record.fs_base = task->thread.fsbase;
	record.gs_base = task->thread.gsbase;
	record.segments[0] = task->thread.ds;
	record.segments[1] = task->thread.es;
	record.segments[2] = task->thread.fsindex;
	record.segments[3] = task->thread.gsindex;
#endif
}

/* True when that is the timer of the thread, and it is set. What it looks like tells: its function has an address that is not known here. */
static __u32 take_timer_at(const struct hrtimer_sleeper *sleeper)
{
	enum { SET = 1, KERNEL = 0xff /* the bits that all its addresses have, with page tables of five levels, too */ };
	const __s64 most_slack = 1000000000LL * 100;
	__s64 late = BPF_CORE_READ(sleeper, timer.node.expires), soon = BPF_CORE_READ(sleeper, timer._softexpires);
	__u64 base = (__u64)BPF_CORE_READ(sleeper, timer.base);

	if (BPF_CORE_READ_BITFIELD_PROBED(sleeper, timer.state) != SET || soon <= 0 || soon > late || late - soon > most_slack ||
	    base >> 56 != KERNEL)
		return 0;
	record.timer_ns = soon - (__s64)bpf_ktime_get_ns(); /* it may be as late as that, to save wake-ups */
	record.flags |= TASK_HAS_TIMER;
	return 1;
}

/* The memory of a thread's kernel stack, from where it has left its CPU. */
struct innermost {
	__u64 task;
	__u64 sp;
};

static long look_at_word(__u32 i, struct innermost *in)
{
	if (i >= INNERMOST_WORDS || innermost[i] != in->task)
		return 0;
	return take_timer_at((void *)(in->sp + i * sizeof(__u64) - bpf_core_field_offset(struct hrtimer_sleeper, task)));
}

/* It waits for a futex for ever, as most threads do that wait: there is no timer to be looked for. */
static __u32 has_no_limit(void)
{
#if defined(__TARGET_ARCH_x86)
	enum { NR_FUTEX = 202, LIMIT = 7 /* r10 */ };
#else
	enum { NR_FUTEX = 98, LIMIT = 3 };
#endif
	return record.syscall_nr == NR_FUTEX && !record.regs[LIMIT];
}

/*
 * A sleep that ends by itself has its timer, which names the thread, not far from where the thread has left its CPU. The stack ends with the
 * user's registers.
 */
static void take_timer(struct task_struct *task)
{
	struct innermost in = {.task = (__u64)task, .sp = kernel_sp(task)};
	__u64 size = record.user_regs - in.sp;

	if (!has_loops || !bpf_core_field_exists(struct hrtimer_sleeper, timer.node.expires) || record.user_regs <= in.sp)
		return;
	if (size > sizeof(innermost))
		size = sizeof(innermost);
	if (!bpf_probe_read_kernel(innermost, size, (void *)in.sp))
		bpf_loop(size / sizeof(__u64), look_at_word, &in, 0);
}

/* Which signal has stopped it: the kernel keeps that for its parent. */
static void take_stop(struct task_struct *task)
{
	enum { STOP_SIGNAL_BITS = 0xffff };

	record.stop_signal = task->jobctl & STOP_SIGNAL_BITS;
}

static __u32 tgid_of(const struct task_struct *task)
{
	return BPF_CORE_READ_BITFIELD_PROBED(task, tgid);
}

/*
 * Of a thread that is ready: who has the CPU that it is to run on. Not the reader itself and its children, which have one only for the
 * moment, nor nobody, when the CPU is just about to take it.
 */
static void take_ahead(struct task_struct *task)
{
	struct task_struct *reader = bpf_get_current_task_btf(), *ahead;
	struct cfs_rq *queue;
	struct pid *pid;
	__u32 tgid;

	if (!bpf_core_field_exists(task->se.cfs_rq))
		return;
	queue = BPF_CORE_READ(task, se.cfs_rq);
	if (bpf_core_field_exists(queue->throttle_count) && BPF_CORE_READ_BITFIELD_PROBED(queue, throttle_count))
		record.flags |= TASK_THROTTLED;
	ahead = BPF_CORE_READ(queue, rq, curr);
	tgid = tgid_of(ahead);
	if (!tgid || tgid == reader->tgid || tgid_of(BPF_CORE_READ(ahead, real_parent)) == reader->tgid || ahead == task)
		return;
	record.flags |= TASK_HAS_AHEAD;
	pid = ns_inum ? BPF_CORE_READ(ahead, group_leader, thread_pid) : NULL;
	record.ahead_tgid = ns_inum ? number_in(pid, BPF_CORE_READ(pid, level)) : tgid;
	BPF_CORE_READ_STR_INTO(&record.ahead_comm, ahead, comm);
}

/* Where it is, for the window's program. */
static void take_place(struct task_struct *task)
{
	enum { SCHED_DEADLINE = 6, ABOVE_ALL = 100 };

	record.task = (__u64)task;
	record.start_ns = task->start_time;
	record.files = (__u64)BPF_CORE_READ(task, files);
	if (bpf_core_field_exists(task->thread_info.cpu)) {
		record.cpu = task->thread_info.cpu;
		record.flags |= TASK_HAS_CPU;
	} else if (bpf_core_field_exists(((struct task_struct___before_5_16 *)task)->cpu)) {
		record.cpu = ((struct task_struct___before_5_16 *)task)->cpu;
		record.flags |= TASK_HAS_CPU;
	}
	record.rt_priority = task->policy == SCHED_DEADLINE ? ABOVE_ALL : task->rt_priority;
}

SEC("iter/task")
int dump_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	__u32 tgid, tid;
	long len = 0;

	if (!task)
		return 0;
	tgid = process_of(task);
	if (pass.target_tgid ? tgid != pass.target_tgid : task->flags & PF_KTHREAD)
		return 0;
	tid = BPF_CORE_READ(task, thread_pid) ? number_of(task) : 0; /* it has been reaped */
	if (!tid || (pass.only_tid && tid != pass.only_tid))
		return 0;

	if (pass.counters_only)
		__builtin_memset(&record, 0, TASK_RECORD_COUNTERS);
	else
		__builtin_memset(&record, 0, sizeof(record));
	record.tgid = tgid;
	record.tid = tid;
	record.syscall_nr = -1;
	/* Counters first: a thread that runs while the rest is read has other counters in the next pass. */
	if (bpf_core_field_exists(task->sched_info.pcount)) {
		record.runs = task->sched_info.pcount;
		record.flags |= TASK_HAS_RUNS;
	}
	record.nvcsw = task->nvcsw;
	record.nivcsw = task->nivcsw;
	record.cpu_ns = task->se.sum_exec_runtime;
	barrier();
	record.state = state_of(task);
	record.exit_state = FIELD(task, exit_state);
	record.mm = (__u64)BPF_CORE_READ(task, mm);
	if (is_on_cpu(task))
		record.flags |= TASK_ON_CPU;
	if (task->flags & PF_KTHREAD)
		record.flags |= TASK_IS_KERNEL_THREAD;
	BPF_CORE_READ_STR_INTO(&record.comm, task, comm);

	if (!pass.counters_only && !record.exit_state) {
		take_off_cpu_time(task);
		take_place(task);
		take_stop(task);
		if (!record.state && !(record.flags & TASK_ON_CPU))
			take_ahead(task);
		if (!(record.flags & TASK_IS_KERNEL_THREAD))
			take_registers(task);
		if (record.state & INTERRUPTIBLE && record.flags & TASK_HAS_REGS && !(record.flags & TASK_ON_CPU) && !has_no_limit())
			take_timer(task);
		if (pass.want_kernel && !(record.flags & TASK_ON_CPU)) {
			len = bpf_get_task_stack(task, kernel_stack, sizeof(kernel_stack), 0);
			if (len < 0)
				record.kernel_error = (__s32)len;
			else
				record.nkernel = (__u32)len / sizeof(__u64);
		}
	}

	/*
	 * Switched out since the counters were read: it did run. Without the count of its runs, which rises when a
	 * thread gets a CPU and not when it leaves it, the second pass could take it for one that slept throughout. And what was
	 * read last, the kernel stack, may be that of another wait.
	 */
	if (is_on_cpu(task) || task->nvcsw != record.nvcsw || task->nivcsw != record.nivcsw)
		record.flags |= TASK_ON_CPU;
	if (bpf_core_field_exists(task->sched_info.pcount) && task->sched_info.pcount != record.runs)
		record.flags |= TASK_ON_CPU;

	if (pass.counters_only)
		bpf_seq_write(seq, &record, TASK_RECORD_COUNTERS);
	else
		bpf_seq_write(seq, &record, sizeof(record));
	if (len > 0 && len <= (long)sizeof(kernel_stack))
		bpf_seq_write(seq, kernel_stack, (__u32)len);
	return 0;
}
