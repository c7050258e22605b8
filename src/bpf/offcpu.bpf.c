// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Waits of threads. When a thread leaves its CPU only the time is noted; its stacks are taken when it is back, for waits
 * that were long enough, in its own context where the kernel has a place for that.
 */
#include <linux/bpf.h>

#include "bpf/kernel_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/offcpu_record.h"
#include "bpf/unwind_row.h"

typedef _Bool bool;
enum { false, true };

#include "bpf/user_stack.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { PF_KTHREAD = 0x00200000, TASK_INTERRUPTIBLE = 1, TASK_UNINTERRUPTIBLE = 2 };
enum { RING_DEFAULT = 1 << 24, ASK_AGAIN_NS = 200000000, MAX_DEPTH = 32 /* of pid namespaces */ };

/* Set by the loader. */
const volatile __u64 min_ns;
const volatile __u64 max_ns = -1ull;
const volatile __u32 ns_inum;	  /* the loader's pid namespace; 0: the first one, which has all */
const volatile __u32 self_tgid;	  /* the loader */
const volatile bool all_processes;
const volatile bool want_children;
const volatile bool want_kernel = true;
const volatile bool want_user = true;
const volatile bool want_wakers;
const volatile bool at_switch_out; /* the kernel has no place in the resumed thread: stacks are taken at every switch */
const volatile bool want_sleeping = true;
const volatile bool want_uninterruptible = true;
const volatile bool want_runnable = true;

__u64 losses[OFFCPU_LOSSES];
__u64 waits_seen; /* over the threshold or not */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_DEFAULT);
} ring SEC(".maps");

/* The processes to watch, unless all are. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
} targets SEC(".maps");

/* Stacks that the loader has. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 18);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct offcpu_stack_id);
	__type(value, __u8);
} known_stacks SEC(".maps");

/* Processes that the loader was asked for: 0 until it answers, then when it had nothing new to tell. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u64);
} requested SEC(".maps");

struct thread_state {
	__u64 left_ns;	/* 0: it is on a CPU, or not watched */
	__u64 woken_ns; /* 0: nobody has woken it */
	__u32 state;
	__u32 waker_tgid;
	__u32 waker_tid;
	__u32 zero;
	struct offcpu_stack_id stack;
	struct offcpu_stack_id waker_stack;
	char waker_comm[OFFCPU_COMM];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads SEC(".maps");

static void lose(enum offcpu_lost what)
{
	__sync_fetch_and_add(&losses[what], 1);
}

/*
 * Tasks come from tracepoints with BTF, so that their fields are read directly: a helper call for each would double what a
 * switch costs.
 *
 * A thread's number as the loader's pid namespace counts; 0 when it is not in it.
 */
static __u32 number_of(struct task_struct *task)
{
	struct upid *number;
	struct pid *pid;
	__u32 depth;

	if (!ns_inum)
		return task->pid;
	pid = BPF_CORE_READ(task, thread_pid);
	depth = pid ? BPF_CORE_READ(pid, level) : 0;
	for (__u32 i = 1; i <= MAX_DEPTH && i <= depth; i++) {
		number = (void *)pid + bpf_core_field_offset(pid->numbers) + i * bpf_core_type_size(struct upid);
		if (BPF_CORE_READ(number, ns, ns.inum) == ns_inum)
			return BPF_CORE_READ(number, nr);
	}
	return 0;
}

static __u32 process_of(struct task_struct *task)
{
	return ns_inum ? number_of(task->group_leader) : task->tgid;
}

static bool is_watched(struct task_struct *task)
{
	__u32 tgid;

	if (task->flags & PF_KTHREAD || !task->pid)
		return false;
	tgid = process_of(task);
	if (all_processes)
		return tgid && tgid != self_tgid;
	return bpf_map_lookup_elem(&targets, &tgid);
}

static __u32 state_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return ((struct task_struct___before_5_14 *)task)->state;
}

/* The letter of a state that is a wait, or 0. */
static __u32 letter_of(bool preempted, __u32 state)
{
	if (preempted || state == 0)
		return want_runnable ? OFFCPU_RUNNABLE : 0;
	if (state & TASK_UNINTERRUPTIBLE)
		return want_uninterruptible ? OFFCPU_UNINTERRUPTIBLE : 0;
	if (state & TASK_INTERRUPTIBLE)
		return want_sleeping ? OFFCPU_SLEEPING : 0;
	return 0; /* stopped, traced, dead */
}

static __u64 mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ (hash >> 29);
}

static long hash_frame(__u32 index, void *ctx)
{
	struct {
		struct offcpu_stack_id id;
		__u32 which;
	} *h = ctx;
	struct stack_scratch *scratch = get_scratch(h->which);

	if (!scratch || index >= OFFCPU_FRAMES)
		return 1;
	h->id.low = mix(h->id.low, scratch->frames[index]);
	h->id.high = mix(h->id.high, scratch->frames[index] + 0x7f4a7c15);
	return 0;
}

static void hash_stack(struct stack_scratch *scratch, __u32 tgid, __u32 which, struct offcpu_stack_id *out)
{
	struct {
		struct offcpu_stack_id id;
		__u32 which;
	} h = {.which = which};

	h.id.low = mix(scratch->head.nkernel, (__u64)tgid << 32 | scratch->head.user_end);
	h.id.high = mix(scratch->head.nuser, (__u64)(__u32)scratch->head.kernel_error << 32 | tgid);
	bpf_loop(scratch->head.nkernel + scratch->head.nuser, hash_frame, &h, 0);
	if (!h.id.low && !h.id.high)
		h.id.low = 1;
	*out = h.id;
}

/*
 * Asks the loader for the tables of a process, and once only until it answers. Some stacks lead to where no code is,
 * however often the maps are read: after an answer without news it is left in peace for a while.
 */
static void request_maps(__u32 tgid)
{
	struct offcpu_process record = {.kind = OFFCPU_NEED_MAPS, .tgid = tgid};
	__u64 *answered = bpf_map_lookup_elem(&requested, &tgid), pending = 0;

	if (answered) {
		if (!*answered || bpf_ktime_get_ns() - *answered < ASK_AGAIN_NS)
			return;
		*answered = 0;
	} else if (bpf_map_update_elem(&requested, &tgid, &pending, BPF_NOEXIST)) {
		return;
	}
	if (bpf_ringbuf_output(&ring, &record, sizeof(record), 0)) {
		lose(OFFCPU_LOST_REQUESTS);
		bpf_map_delete_elem(&requested, &tgid);
	}
}

/* Takes the stacks of the current thread, and sends them if the loader does not have them. */
static void take_stack(void *ctx, __u32 tgid, __u32 which, struct offcpu_stack_id *out)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct stack_scratch *scratch = get_scratch(which);
	struct offcpu_stack_id id = {};
	__u32 total;
	__u8 one = 1;

	*out = id;
	if (!scratch)
		return;
	scratch->head = (struct offcpu_stack){.kind = OFFCPU_STACK, .user_end = OFFCPU_END_NO_USER};
	if (want_kernel) {
		long len = bpf_get_stack(ctx, scratch->frames, OFFCPU_KERNEL_FRAMES * sizeof(__u64), 0);

		if (len < 0)
			scratch->head.kernel_error = (__s32)len;
		else
			scratch->head.nkernel = (__u32)len / sizeof(__u64);
	}
	if (scratch->head.nkernel > OFFCPU_KERNEL_FRAMES)
		return;
	/* A thread that ends has given up its memory: what is mapped may be that of another process. */
	if (want_user && !(task->flags & PF_KTHREAD) && task->mm) {
		walk_user(task, tgid, which, scratch);
		if (scratch->head.user_end == OFFCPU_END_NO_TABLES)
			request_maps(tgid);
	}
	hash_stack(scratch, tgid, which, &id);
	*out = id;
	if (bpf_map_lookup_elem(&known_stacks, &id))
		return;
	scratch->head.id = id;
	total = scratch->head.nkernel + scratch->head.nuser;
	if (total > OFFCPU_FRAMES)
		return;
	if (bpf_ringbuf_output(&ring, scratch, sizeof(scratch->head) + total * sizeof(__u64), BPF_RB_NO_WAKEUP))
		lose(OFFCPU_LOST_STACKS);
	else
		bpf_map_update_elem(&known_stacks, &id, &one, 0); /* when it is full the stack is sent again */
}

static void send_wait(struct task_struct *task, const struct thread_state *s, __u64 now)
{
	struct offcpu_wait *wait = bpf_ringbuf_reserve(&ring, sizeof(*wait), 0);

	if (!wait) {
		lose(OFFCPU_LOST_WAITS);
		return;
	}
	*wait = (struct offcpu_wait){
		.kind = OFFCPU_WAIT,
		.state = s->state,
		.tgid = process_of(task),
		.tid = number_of(task),
		.start_ns = s->left_ns,
		.duration_ns = now - s->left_ns,
		.stack = s->stack,
	};
	if (s->state == OFFCPU_RUNNABLE)
		wait->runnable_ns = wait->duration_ns;
	else if (s->woken_ns && s->woken_ns < now)
		wait->runnable_ns = now - s->woken_ns;
	BPF_CORE_READ_STR_INTO(&wait->comm, task, comm);
	if (want_wakers && s->waker_tid) {
		wait->waker_tgid = s->waker_tgid;
		wait->waker_tid = s->waker_tid;
		wait->waker_stack = s->waker_stack;
		__builtin_memcpy(wait->waker_comm, s->waker_comm, OFFCPU_COMM);
	}
	bpf_ringbuf_submit(wait, BPF_RB_NO_WAKEUP);
}

static bool is_long_enough(const struct thread_state *s, __u64 now)
{
	return now - s->left_ns >= min_ns && now - s->left_ns <= max_ns;
}

/* The current thread has just got a CPU. */
static void resume(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct thread_state *s = bpf_task_storage_get(&threads, task, 0, 0);
	__u64 now;

	if (!s || !s->left_ns)
		return;
	now = bpf_ktime_get_ns();
	if (is_long_enough(s, now)) {
		take_stack(ctx, process_of(task), SCRATCH_WAITER, &s->stack);
		send_wait(task, s, now);
	}
	s->left_ns = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct thread_state *s;
	__u32 letter;

	if (is_watched(prev)) {
		letter = letter_of(preempt, state_of(prev));
		s = letter ? bpf_task_storage_get(&threads, prev, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) : 0;
		if (letter && !s)
			lose(OFFCPU_LOST_STATE);
		if (s) {
			s->woken_ns = 0;
			s->waker_tid = 0;
			s->state = letter;
			if (at_switch_out)
				take_stack(ctx, process_of(prev), SCRATCH_WAITER, &s->stack);
			s->left_ns = bpf_ktime_get_ns();
		}
	}
	if (at_switch_out) {
		__u64 now;

		s = bpf_task_storage_get(&threads, next, 0, 0);
		if (!s || !s->left_ns)
			return 0;
		now = bpf_ktime_get_ns();
		if (is_long_enough(s, now))
			send_wait(next, s, now);
		s->left_ns = 0;
	}
	return 0;
}

/* Since 6.18 or so: the end of __schedule(), in the thread that runs from now on. */
SEC("?tp_btf/sched_exit_tp")
int BPF_PROG(on_sched_exit, bool is_switch)
{
	if (is_switch)
		resume(ctx);
	return 0;
}

SEC("?kprobe/finish_task_switch")
int on_finish_switch(struct pt_regs *ctx)
{
	resume(ctx);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *p)
{
	struct thread_state *s = bpf_task_storage_get(&threads, p, 0, 0);
	struct task_struct *waker;

	if (!s || !s->left_ns || s->woken_ns)
		return 0;
	s->woken_ns = bpf_ktime_get_ns();
	if (!want_wakers)
		return 0;
	waker = (struct task_struct *)bpf_get_current_task_btf();
	s->waker_tgid = process_of(waker);
	s->waker_tid = number_of(waker);
	BPF_CORE_READ_STR_INTO(&s->waker_comm, waker, comm);
	take_stack(ctx, s->waker_tgid, SCRATCH_WAKER, &s->waker_stack);
	return 0;
}

static void tell(__u32 kind, __u32 tgid)
{
	struct offcpu_process record = {.kind = kind, .tgid = tgid};

	if (bpf_ringbuf_output(&ring, &record, sizeof(record), 0))
		lose(OFFCPU_LOST_REQUESTS);
}

/*
 * A new process may have the number of one that has ended. It has the memory of its parent, and so its tables, until it
 * executes something: short-lived children would never get any otherwise.
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = process_of(parent), new_tgid = process_of(child);
	struct offcpu_maps *maps, copy;
	__u8 one = 1;

	if (child->pid != child->tgid || !new_tgid)
		return 0; /* only a thread */
	bpf_map_delete_elem(&requested, &new_tgid);
	if (!all_processes) {
		if (!want_children || !bpf_map_lookup_elem(&targets, &tgid)) {
			bpf_map_delete_elem(&targets, &new_tgid);
			return 0;
		}
		if (bpf_map_update_elem(&targets, &new_tgid, &one, 0))
			lose(OFFCPU_LOST_REQUESTS);
	}
	maps = bpf_map_lookup_elem(&processes, &tgid);
	if (maps) {
		copy = *maps;
		bpf_map_update_elem(&processes, &new_tgid, &copy, 0);
	} else {
		bpf_map_delete_elem(&processes, &new_tgid);
	}
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	__u32 tgid = process_of(task);

	if (!is_watched(task))
		return 0;
	bpf_map_delete_elem(&processes, &tgid); /* the old program's tables */
	tell(OFFCPU_EXEC, tgid);
	return 0;
}

/* The thread that ends is not counted as live any more. Of two that end together both may be the last: that does no harm. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	__u32 tgid = process_of(task);

	if (!is_watched(task) || task->signal->live.counter != 0)
		return 0;
	bpf_map_delete_elem(&processes, &tgid);
	bpf_map_delete_elem(&targets, &tgid);
	tell(OFFCPU_EXIT, tgid);
	return 0;
}
