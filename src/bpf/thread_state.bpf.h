/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_THREAD_STATE_H
#define STAKEOUT_BPF_THREAD_STATE_H

/* What the off-CPU programs note of a thread from one of its switches to the next, and where. */

/* Set by the loader. */
const volatile bool storage_hides; /* task storage that is there may not be found: see `spares` */
const volatile __u32 pretended;    /* enum offcpu_pretence */

/*
 * An iterator notes the threads that wait when the recording begins, while such a thread may get a CPU and leave it
 * again. So each of the two has its own fields, and the one word that both change says whose fields count: the iterator
 * cannot overwrite what the thread wrote, whoever comes first.
 */
#define NOTED (1ull << 63) /* in left_ns: note_waiting() wrote it, and its fields count */

struct thread_state {
	__u64 left_ns;	/* 0: the thread is on a CPU, or not watched */
	__u64 left_ran_ns; /* for how long it had been on a CPU when it left */
	__u64 ran_ns;	/* the same when the recording began */
	__u64 back_ns;	/* of a spare: when it came back, and its storage was not to be had */
	__u64 woken_ns; /* 0: nobody has woken it */
	__u64 delay_ns; /* its total wait for a CPU when it left; see runnable_ns() */
	__u32 state;
	__u32 waker_tgid;
	__u32 waker_tid;
	__u32 tgid; /* of an exiting thread: it may lose its pid and tid before it leaves its CPU for the last time */
	__u32 tid;
	__u8 sent; /* the loader has its stack */
	__u8 stack_cut; /* for want of maps: it is taken again when the thread is back, and they may be known */
	__u8 zero[2];
	__u32 noted_state;
	__u64 noted_delay_ns;
	__u64 tstate;	   /* that Python has of it; 0: none is known, and it was looked for */
	__u64 searched_ns; /* then, */
	__u32 searches;    /* and so often */
	__u32 zeroes;
	struct offcpu_stack_id stack; /* if it is taken at switch-out */
	struct offcpu_stack_id back_stack; /* of a spare: with back_ns */
	struct offcpu_stack_id waker_stack;
	char waker_comm[OFFCPU_COMM];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads SEC(".maps");

/*
 * A CPU refuses task storage while a thread that changes some has been preempted or interrupted on it, whosever that is:
 * new storage, and before Linux 6.2 any (storage_hides). What has to be noted of a thread then goes here: its state, or
 * that it came back. Allocated in advance, so it also helps when there is no memory.
 */
struct spare_key {
	__u64 start_ns; /* of the thread, as pids are used again */
	__u32 pid;
	__u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct spare_key);
	__type(value, struct thread_state);
} spares SEC(".maps");

__u32 nspares; /* most of the time nobody has to look */

static const struct thread_state no_state;

static struct spare_key key_of(struct task_struct *task)
{
	return (struct spare_key){.start_ns = task->start_time, .pid = task->pid};
}

static struct thread_state *find_spare(struct task_struct *task)
{
	struct spare_key key;

	if (!nspares)
		return 0;
	key = key_of(task);
	return bpf_map_lookup_elem(&spares, &key);
}

static struct thread_state *make_spare(struct task_struct *task)
{
	struct spare_key key = key_of(task);

	__sync_fetch_and_add(&nspares, 1);
	if (bpf_map_update_elem(&spares, &key, &no_state, BPF_NOEXIST))
		__sync_fetch_and_add(&nspares, -1);
	return bpf_map_lookup_elem(&spares, &key);
}

static void drop_spare(struct task_struct *task)
{
	struct spare_key key;

	if (!nspares)
		return;
	key = key_of(task);
	if (!bpf_map_delete_elem(&spares, &key))
		__sync_fetch_and_add(&nspares, -1);
}

/* For tests: at times in a way that is the same through one event, and has all that can follow each other. */
static bool is_busy(struct task_struct *task, __u32 when)
{
	__u32 switches;

	if (!(pretended & when))
		return false;
	if (!(pretended & OFFCPU_BUSY_AT_TIMES))
		return true;
	switches = task->nvcsw + task->nivcsw;
	return (switches * 2654435761u >> 16) & when;
}

/* `when`: enum offcpu_pretence, or 0. */
static struct thread_state *find_storage(struct task_struct *task, __u32 when, __u64 flags)
{
	return is_busy(task, when) ? 0 : bpf_task_storage_get(&threads, task, 0, flags);
}

/* What was noted of a thread; 0: nothing. A wait that is in a spare is the last one. */
static struct thread_state *find_state_when(struct task_struct *task, __u32 when)
{
	struct thread_state *spare = find_spare(task), *s;

	if (spare && spare->left_ns)
		return spare;
	s = find_storage(task, when, 0);
	return s ? s : spare;
}

static struct thread_state *find_state(struct task_struct *task)
{
	return find_state_when(task, 0);
}

#endif
