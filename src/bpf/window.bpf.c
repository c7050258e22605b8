// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Looks at threads that cannot run just now, since somebody has taken their CPUs: all in one call, as quickly as can be.
 * Called a second time, tells which of them have run in between after all. Tasks are plain addresses here, which the kernel reads
 * with care: should one be free by now, or another thread, then that is seen by its start.
 */
#include "bpf/kernel_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "bpf/entry_regs.bpf.h"
#include "bpf/left_cpu.bpf.h"
#include "bpf/window_request.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct window_request request;

#define NUMBER(task, field) ((__u32)BPF_CORE_READ_BITFIELD_PROBED(task, field))

static void take_counters(struct task_struct *task, struct task_record *record)
{
	if (bpf_core_field_exists(task->sched_info.pcount)) {
		record->runs = BPF_CORE_READ(task, sched_info.pcount);
		record->flags |= TASK_HAS_RUNS;
	}
	record->nvcsw = BPF_CORE_READ(task, nvcsw);
	record->nivcsw = BPF_CORE_READ(task, nivcsw);
}

static void take_off_cpu_time(struct task_struct *task, struct task_record *record)
{
	struct task_struct *own = bpf_get_current_task_btf();
	struct cpu_turn turn, now;

	if (!bpf_core_field_exists(task->sched_info.last_arrival))
		return;
	turn = (struct cpu_turn){
		.arrived = BPF_CORE_READ(task, sched_info.last_arrival),
		.ran = BPF_CORE_READ(task, se.sum_exec_runtime) - BPF_CORE_READ(task, se.prev_sum_exec_runtime),
		.policy = NUMBER(task, policy),
	};
	now = (struct cpu_turn){
		.arrived = own->sched_info.last_arrival,
		.ran = own->se.sum_exec_runtime - own->se.prev_sum_exec_runtime,
		.policy = own->policy,
	};
	/* Of a real-time thread that we have just preempted it is not known when it left. */
	if (record->state || is_fair(turn.policy))
		set_off_cpu_time(record, turn, now);
}

static void take_registers(struct task_struct *task, __u64 regs, struct task_record *record)
{
	if (bpf_probe_read_kernel(record->regs, ENTRY_REGS_WORDS * sizeof(__u64), (void *)regs))
		return;
	record->flags |= TASK_HAS_REGS;
	record->altstack_start = BPF_CORE_READ(task, sas_ss_sp);
	record->altstack_len = BPF_CORE_READ(task, sas_ss_size);
	take_syscall((struct pt_regs *)regs, record);
#if defined(__TARGET_ARCH_x86)
	record->fs_base = BPF_CORE_READ(task, thread.fsbase);
	record->gs_base = BPF_CORE_READ(task, thread.gsbase);
	record->segments[0] = BPF_CORE_READ(task, thread.ds);
	record->segments[1] = BPF_CORE_READ(task, thread.es);
	record->segments[2] = BPF_CORE_READ(task, thread.fsindex);
	record->segments[3] = BPF_CORE_READ(task, thread.gsindex);
#endif
}

static void look(struct window_thread *thread, struct task_record *record)
{
	struct task_struct *task = (struct task_struct *)thread->task;

	record->flags = 0;
	record->syscall_nr = -1;
	/* Counters first, as in the iterator. */
	take_counters(task, record);
	barrier();
	record->state = NUMBER(task, __state);
	record->exit_state = NUMBER(task, exit_state);
	record->mm = (__u64)BPF_CORE_READ(task, mm);
	record->cpu_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
	if (NUMBER(task, on_cpu))
		record->flags |= TASK_ON_CPU;
	take_off_cpu_time(task, record);
	take_registers(task, thread->regs, record);
	thread->gone = BPF_CORE_READ(task, start_time) != thread->start_ns;
	thread->moved = 0;
}

static void look_again(struct window_thread *thread, const struct task_record *record)
{
	struct task_struct *task = (struct task_struct *)thread->task;
	struct task_record now = {.flags = 0};
	__u32 on_cpu = NUMBER(task, on_cpu); /* before the counters: some rise when a thread leaves its CPU */

	barrier();
	take_counters(task, &now);
	thread->moved = on_cpu || now.runs != record->runs || now.nvcsw != record->nvcsw || now.nivcsw != record->nivcsw ||
			record->flags & TASK_ON_CPU || BPF_CORE_READ(task, start_time) != thread->start_ns;
}

static long look_at(__u32 nth, struct window_range *range)
{
	__u32 i = range->first + nth;

	if (i >= WINDOW_THREADS)
		return 1;
	if (range->again)
		look_again(&request.threads[i], &request.records[i]);
	else
		look(&request.threads[i], &request.records[i]);
	return 0;
}

SEC("syscall")
int look_at_range(struct window_range *ctx)
{
	struct window_range range = *ctx;

	bpf_loop(range.count, look_at, &range, 0);
	return 0;
}
