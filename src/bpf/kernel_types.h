/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_KERNEL_TYPES_H
#define STAKEOUT_BPF_KERNEL_TYPES_H

/*
 * The few kernel types that the BPF programs read, with only the fields they read. Offsets are taken from the
 * running kernel's BTF when the program is loaded (CO-RE), so neither order nor neighbours matter, and no header
 * generated from one particular kernel is needed to build.
 *
 * Sizes change, too: on_cpu was an int until Linux 7.2 made it one byte of several. A direct load gets the kernel's
 * size, but only if the field is unsigned in both places: so integers are declared unsigned here, and FIELD() reads
 * those that the kernel has signed. BPF_CORE_READ() takes the size from here, and is for fields of 64 bits and for text.
 */

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;

/* Named by the helpers' declarations. */
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#define static_assert _Static_assert

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	unsigned int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct;

struct rq {
	__u64 clock;
	struct task_struct *curr;
};

struct cfs_rq {
	struct rq *rq;
	unsigned int throttle_count; /* of it, and of those that it is in */
};

struct timerqueue_node {
	__s64 expires;
};

struct hrtimer {
	struct timerqueue_node node;
	__s64 _softexpires;
	void *base;
	__u8 state;
};

/* The timer of a thread that sleeps, in the memory of the function that has it sleep. */
struct hrtimer_sleeper {
	struct hrtimer timer;
	struct task_struct *task;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime;
};

struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay;
	unsigned long long last_arrival;
	unsigned long long last_queued;
};

struct thread_struct {
	unsigned long sp; /* of x86 */
	unsigned short es;
	unsigned short ds;
	unsigned short fsindex;
	unsigned short gsindex;
	unsigned long fsbase;
	unsigned long gsbase;
};

struct cpu_context {
	unsigned long sp;
};

struct thread_struct___arm64 {
	struct cpu_context cpu_context;
	struct {
		unsigned long tp_value;
	} uw;
};

typedef struct {
	void *vdso;
	const void *vdso_image; /* x86 has several */
} mm_context_t;

struct mm_struct {
	mm_context_t context;
	unsigned int map_count;
	unsigned long exec_vm; /* pages of code */
	unsigned long end_code; /* 0 while a program is being loaded */
};

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

/* Of Linux 6.6 to 6.10. */
struct inode___before_6_11 {
	struct timespec64 __i_ctime;
};

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	__u64 i_ctime_sec;
	unsigned int i_ctime_nsec;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	unsigned int f_mode;
	unsigned int f_flags;
	void *private_data;
};

struct eventfd_ctx {
	__u64 count;
};

typedef struct {
	void *net;
} possible_net_t;

struct in6_addr {
	__u8 in6_u;
};

struct sock_common {
	unsigned int skc_daddr;
	unsigned int skc_rcv_saddr;
	unsigned short skc_dport;
	unsigned short skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	unsigned short sk_type;
	unsigned short sk_protocol;
	unsigned int sk_ack_backlog;
	unsigned int sk_max_ack_backlog;
};

struct socket {
	struct sock *sk;
};

struct tcp_sock {
	unsigned int rcv_nxt;
	unsigned int copied_seq;
	unsigned int write_seq;
	unsigned int snd_una;
};

struct tcp6_sock {
	struct tcp_sock tcp;
};

struct files_struct;

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
	struct mm_struct *vm_mm;
};

/* A page fault, in the memory of the function that handles it. */
struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long pgoff;   /* in the file */
	unsigned long address; /* of the page */
};

typedef struct {
	unsigned int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not begun to end */
	unsigned int nr_threads; /* threads that still exist */
};

struct thread_info {
	unsigned int cpu;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	unsigned int on_cpu;
	unsigned int exit_state;
	int exit_signal;
	unsigned int policy;
	unsigned int rt_priority;
	struct sched_entity se;
	struct sched_info sched_info;
	struct mm_struct *mm;
	unsigned int pid;
	unsigned int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct files_struct *files;
	__u64 start_time;
	unsigned long nvcsw;
	unsigned long nivcsw;
	unsigned long jobctl;
	char comm[16];
	int *clear_child_tid;
	unsigned long sas_ss_sp;
	unsigned long sas_ss_size;
	struct thread_struct thread;
};

struct task_struct___arm64 {
	struct thread_struct___arm64 thread;
};

/* Before 5.16. */
struct task_struct___before_5_16 {
	unsigned int cpu;
};

/* Before 5.14 the field had no underscores. */
struct task_struct___before_5_14 {
	unsigned long state;
};

/* aarch64: the system call as the entry code saved it, behind the registers that ptrace shows. */
struct pt_regs___arm64_entry {
	__u64 orig_x0;
	__s32 syscallno;
};

#pragma clang attribute pop

struct pt_regs;

/* What an iterator is given is the same everywhere, and needs no BTF. */
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

#endif
