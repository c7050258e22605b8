/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_TASK_RECORD_H
#define STAKEOUT_BPF_TASK_RECORD_H

/*
 * What the task iterator writes for each thread: this record, then `nkernel` return addresses of its kernel stack.
 * Shared by the BPF program and its reader.
 */

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#endif

enum {
	TASK_RECORD_REGS = 34,	       /* room for pt_regs of either architecture, as far as ptrace shows it: */
	TASK_RECORD_REGS_X86_64 = 21,  /* r15 … ss */
	TASK_RECORD_REGS_AARCH64 = 34, /* x0 … x30, sp, pc, pstate */
	TASK_RECORD_SEGMENTS = 4,
	TASK_RECORD_KERNEL = 127,      /* frames of the kernel stack: the kernel's own limit */
};

/* What a pass is to show. */
struct task_pass {
	__u32 target_tgid;   /* in the reader's pid namespace; 0: every process, but not the kernel's threads */
	__u32 only_tid;	     /* 0: every thread */
	__u32 counters_only; /* pass 2: TASK_RECORD_COUNTERS bytes of each record, and no kernel stacks */
	__u32 want_kernel;
};

enum task_record_flag {
	TASK_ON_CPU = 1 << 0,
	TASK_HAS_REGS = 1 << 1,
	TASK_HAS_OFF_CPU = 1 << 2,
	TASK_IS_KERNEL_THREAD = 1 << 3,
	TASK_HAS_RUNS = 1 << 4,
	TASK_HAS_CPU = 1 << 5,
	TASK_THROTTLED = 1 << 6, /* its control group has used up its share of CPU time */
	TASK_HAS_TIMER = 1 << 7,
	TASK_HAS_AHEAD = 1 << 8,
};

struct task_record {
	__u32 tgid; /* as seen from the reader's pid namespace */
	__u32 tid;
	__u32 flags;
	__u32 state;	  /* task_struct.__state */
	__u32 exit_state;
	__u32 stop_signal; /* that has stopped it, or was the last to do so */
	__u64 nvcsw;
	__u64 nivcsw;
	__u64 runs; /* how often it got a CPU */
	__u64 mm; /* identity of the address space: changes with exec */
	__u64 cpu_ns; /* how long it has run, ever */
	char comm[16];
	__u32 nkernel;
	__s32 kernel_error; /* -errno when the kernel stack could not be taken */
	__u64 files; /* identity of the table of descriptors, which a thread may have for itself; 0: none */
	__u64 off_cpu_ns;
	__s64 syscall_nr; /* -1: not in a system call */
	__u64 syscall_arg0;
	__u64 altstack_start; /* sigaltstack; length 0: none */
	__u64 altstack_len;
	__u64 tid_address; /* where the kernel clears the thread's number when it ends: C libraries have it in the thread's descriptor */
	__u64 fs_base; /* x86_64 only */
	__u64 gs_base;
	__u16 segments[TASK_RECORD_SEGMENTS]; /* likewise: ds, es, fs, gs */
	__u64 task;   /* where the kernel has the thread, */
	__u64 user_regs; /* and its user registers: for window_request.h */
	__u64 start_ns; /* when it was created: a number, and even a place, may be another thread's later */
	__u32 cpu;     /* where it runs, or ran last */
	__u16 rt_priority; /* 0: none; 100: of the deadline class */
	__u16 none;
	__s64 timer_ns;	      /* until the timer of its wait; negative: it is over by so much */
	__u32 ahead_tgid;     /* of a thread that is ready: who had the CPU that it was to run on; 0: another namespace's */
	__u32 nothing;
	char ahead_comm[16];
	__u64 regs[TASK_RECORD_REGS];
};

/* What a pass over counters writes of it: all before `files`. */
#define TASK_RECORD_COUNTERS __builtin_offsetof(struct task_record, files)

static_assert(TASK_RECORD_COUNTERS % 8 == 0, "records begin at multiples of 8");
static_assert(sizeof(struct task_record) == 232 + 8 * TASK_RECORD_REGS, "task_record has no hidden padding");

#endif
