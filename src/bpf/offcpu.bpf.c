// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Waits of threads. When a thread leaves its CPU only the time is noted. Its stacks are taken when it is back, if the
 * wait was long enough; in its own context, where the kernel has a hook for that.
 */
#include <linux/bpf.h>

#include "bpf/kernel_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/go_layout.h"
#include "bpf/offcpu_record.h"
#include "bpf/unwind_row.h"

typedef _Bool bool;
enum { false, true };

#include "bpf/hotspot_top.h"
#include "bpf/task.bpf.h"
#include "bpf/switch_clock.bpf.h"
#include "bpf/thread_state.bpf.h"
#include "bpf/take_stack.bpf.h"
#include "bpf/wait_sums.bpf.h"
#include "bpf/watched.bpf.h"
#include "bpf/process_life.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum {
	TASK_INTERRUPTIBLE = 1,
	TASK_UNINTERRUPTIBLE = 2,
	TASK_DEAD = 0x80,
	TASK_WAKING = 0x200,
	TASK_RTLOCK_WAIT = 0x1000, /* a spin lock that sleeps, with PREEMPT_RT */
	TASK_FROZEN = 0x8000,
};
enum { JUST_BACK_NS = 1000000 }; /* who has run for so long and was not seen to come back will not be */

/* Set by the loader. */
const volatile __u64 max_ns = -1ull;
const volatile bool want_wakers;
const volatile bool end_at_switch;   /* the kernel has no hook in the resumed thread: a wait ends at the switch to it */
const volatile bool stack_at_switch; /* when the thread leaves: because of that, or as every wait counts anyway */
const volatile bool want_sleeping = true;
const volatile bool want_uninterruptible = true;
const volatile bool want_runnable = true;
const volatile bool want_waiting = true; /* also waits that began before */
const volatile bool only_misjudged; /* the scheduler's account of waits for a CPU will do, but for some wake-ups */
const volatile bool has_prev_state; /* the tracepoint has the state in which a thread leaves */
const volatile bool want_events; /* each wait is sent; none are added up here */

/* Set by the loader when all programs are attached, and when no more waits are to begin; 0 until then. */
volatile __u64 begin_ns;
volatile __u64 end_ns;
volatile bool noted_all; /* note_waiting() has seen all threads once: now it is for processes that came late */

/* How many waits were long enough. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

/* The letter of a state that is a wait, or 0. */
static __u32 letter_of(bool preempted, __u32 state)
{
	if (preempted || state == 0)
		return want_runnable ? OFFCPU_RUNNABLE : 0;
	if (state & (TASK_UNINTERRUPTIBLE | TASK_RTLOCK_WAIT | TASK_FROZEN))
		return want_uninterruptible ? OFFCPU_UNINTERRUPTIBLE : 0;
	if (state & (TASK_INTERRUPTIBLE | TASK_WAKING))
		return want_sleeping ? OFFCPU_SLEEPING : 0;
	return 0; /* stopped, traced, dead */
}

static void count_seen(void)
{
	__u32 key = 0;
	__u64 *count = bpf_map_lookup_elem(&seen, &key);

	if (count)
		++*count;
}

/*
 * Reports a wait that is over, or that the end of the recording cuts off. `scratch`: its stack, unless that was sent
 * when it began.
 */
static void report_wait(struct offcpu_wait *wait, struct stack_scratch *scratch)
{
	struct offcpu_sums *sum;
	bool sent = true;

	count_seen();
	wait->stack_cut = 0;
	if (scratch)
		wait->key.stack = scratch->head.id;
	sum = want_events ? 0 : bpf_map_lookup_elem(&sums, &wait->key);
	if (scratch && (!sum || sum->stack_missing))
		sent = send_stack(scratch);
	if (!want_events && add_up(wait, sum, sent))
		return;
	if (bpf_ringbuf_output(&ring, wait, sizeof(*wait), BPF_RB_NO_WAKEUP))
		lose(OFFCPU_LOST_WAITS);
}

static __u64 delay_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.run_delay) ? task->sched_info.run_delay : 0;
}

/*
 * How long a thread was ready to run but had no CPU: from the scheduler's own statistics, which are up to date when the
 * thread is back, or else since the wake-up, before which it cannot have been ready.
 */
static __u64 runnable_ns(struct task_struct *task, const struct thread_state *s, __u64 left, __u64 now, __u64 duration)
{
	__u64 ready = s->woken_ns && s->woken_ns < now ? now - s->woken_ns : 0, delay;

	if ((left & NOTED ? s->noted_state : s->state) == OFFCPU_RUNNABLE)
		return duration;
	if (!end_at_switch && bpf_core_field_exists(task->sched_info.run_delay)) {
		delay = delay_of(task) - (left & NOTED ? s->noted_delay_ns : s->delay_ns);
		if (!s->woken_ns || delay < ready)
			ready = delay;
	}
	return ready < duration ? ready : duration;
}

/* When a wait that is reported now was over. */
static __u64 wait_end(void)
{
	__u64 end = end_ns;

	return end ? end : bpf_ktime_get_ns();
}

/* Whether to report this wait: not too short, not too long, and not ending before it began. */
static bool is_reported(__u64 left, __u64 ends)
{
	left &= ~NOTED;
	return left && left <= ends && ends - left >= min_ns && ends - left <= max_ns;
}

/* Fills in the wait of a thread; `left`: what left_ns was. */
static void fill_wait(struct task_struct *task, const struct thread_state *s, __u64 left, __u64 ends,
		      struct offcpu_wait *wait)
{
	wait->kind = OFFCPU_WAIT;
	wait->flags = ends == end_ns ? OFFCPU_UNFINISHED : 0;
	wait->key.tgid = process_of(task);
	wait->key.tid = number_of(task);
	if (!wait->key.tid) {
		wait->key.tgid = s->tgid;
		wait->key.tid = s->tid;
	}
	wait->key.state = left & NOTED ? s->noted_state : s->state;
	wait->key.stack = s->stack;
	wait->stack_cut = s->stack_cut;
	if (left & NOTED) /* it began before the recording: no stack was taken */
		wait->key.stack = (struct offcpu_stack_id){.low = end_at_switch ? OFFCPU_STACK_BEFORE : 0};
	wait->key.process_start_ns = BPF_CORE_READ(task, group_leader, start_time);
	wait->key.thread_start_ns = task->start_time;
	wait->start_ns = left & ~NOTED;
	wait->duration_ns = ends - wait->start_ns;
	wait->runnable_ns = runnable_ns(task, s, left, ends, wait->duration_ns);
	__builtin_memcpy(wait->comm, task->comm, OFFCPU_COMM);
	if (want_wakers && s->waker_tid) {
		wait->key.waker_tid = s->waker_tid;
		wait->key.waker_stack = s->waker_stack;
		wait->waker_tgid = s->waker_tgid;
		__builtin_memcpy(wait->waker_comm, s->waker_comm, OFFCPU_COMM);
	}
}

/* Ends the wait; only the first caller succeeds: the thread itself, or the loader at the end. */
static __u64 take_left(struct thread_state *s)
{
	return __sync_lock_test_and_set(&s->left_ns, 0);
}

/* Takes a wait that is to be reported; 0: somebody else has. */
static __attribute__((noinline)) struct offcpu_wait *take_wait(struct task_struct *task, struct thread_state *s, __u64 ends)
{
	struct stack_scratch *scratch = get_scratch(SCRATCH_WAITER);
	__u64 left = take_left(s);

	if (!left || !scratch)
		return 0;
	scratch->wait = (struct offcpu_wait){};
	fill_wait(task, s, left, ends, &scratch->wait);
	return &scratch->wait;
}

/*
 * The wait that a thread ends by getting a CPU at that time, or now (0); 0: none to report. Most are short, and next to
 * nothing is done for them: nobody else changes what is not 0, but for the loader, which does not report it either.
 */
static __always_inline struct offcpu_wait *end_wait(struct task_struct *task, struct thread_state *s, __u64 ends)
{
	__u64 left = s ? s->left_ns : 0, end = end_ns;

	if (!left)
		return 0;
	if (!ends)
		ends = time_of_return(task);
	if (end && ends > end)
		ends = end;
	if (is_reported(left, ends))
		return take_wait(task, s, ends);
	s->left_ns = 0;
	return 0;
}

/*
 * A thread has just got a CPU: the wait that this ends and that is to be reported, or 0. `now`: 0 if it is not known.
 * *hidden: something may have been noted of the thread, but cannot be found.
 */
static __always_inline struct offcpu_wait *come_back(struct task_struct *task, __u64 now, bool *hidden)
{
	struct thread_state *s = find_state_when(task, OFFCPU_BUSY_BACK);

	*hidden = false;
	if (pretended & OFFCPU_UNSEEN_BACK)
		return 0;
	if (storage_hides && !(s && s->left_ns))
		*hidden = !find_storage(task, OFFCPU_BUSY_BACK, 0);
	return end_wait(task, s, now);
}

/* Then when it came back is noted for settle(); 0: not now. */
static __always_inline struct thread_state *note_back(struct task_struct *task)
{
	struct thread_state *s = is_watched(task) ? make_spare(task) : 0;

	if (!s || s->back_ns)
		return 0;
	s->back_ns = wait_end();
	return s;
}

/* And where. */
static __always_inline void note_return(void *ctx, struct task_struct *task)
{
	struct thread_state *s = note_back(task);
	struct stack_scratch *scratch;

	if (!s)
		return;
	scratch = take_stack(ctx, process_of(task), SCRATCH_WAITER, true);
	if (scratch && send_stack(scratch))
		s->back_stack = scratch->head.id;
}

/* How long the thread has been on a CPU since it left. */
static __u64 ran_since(struct task_struct *task, const struct thread_state *s)
{
	return task->se.sum_exec_runtime - (s->left_ns & NOTED ? s->ran_ns : s->left_ran_ns);
}

/*
 * The thread leaves its CPU, and nobody saw it come back: the kernel does not run a program in the context of a process
 * that it hides from BPF, nor a kprobe while another is at work on that CPU. It came back as long ago as it has run since.
 */
static __attribute__((noinline)) void mend(struct task_struct *task, struct thread_state *s)
{
	__u64 left = s->left_ns & ~NOTED, back = bpf_ktime_get_ns() - ran_since(task, s), end = end_ns;
	struct offcpu_wait *wait;

	if (s->left_ns & NOTED && s->left_ran_ns) { /* too late: it had already been seen to leave, and to come back */
		s->left_ns = 0;
		return;
	}
	if (back < left)
		back = left;
	if (end && back > end)
		back = end;
	wait = end_wait(task, s, back);
	if (!wait)
		return;
	if (!wait->key.stack.low)
		wait->key.stack.low = OFFCPU_STACK_UNSEEN;
	report_wait(wait, 0);
}

/* The stack that was taken when the thread came back, if none was before, or only a part. */
static void use_back_stack(struct offcpu_wait *wait, const struct thread_state *spare)
{
	if (!wait->key.stack.low || (wait->stack_cut && spare->back_stack.low))
		wait->key.stack = spare->back_stack;
}

/* The thread leaves its CPU. `s`: its storage, or 0. What is in a spare is over, and goes there. */
static __attribute__((noinline)) void settle(struct task_struct *task, struct thread_state *s)
{
	struct thread_state *spare = find_spare(task);
	struct offcpu_wait *wait;

	if (!spare)
		return;
	if (spare->left_ns)
		mend(task, spare);
	if (!s)
		return;
	if (!spare->back_ns && spare->left_ran_ns && take_left(s)) /* the last time but one, unseen: too late to tell */
		lose(OFFCPU_LOST_RESUMES);
	wait = spare->back_ns ? end_wait(task, s, spare->back_ns) : 0;
	if (wait) {
		use_back_stack(wait, spare);
		report_wait(wait, 0);
	}
	if (spare->ran_ns)
		s->ran_ns = spare->ran_ns;
	if (spare->tid) {
		s->tgid = spare->tgid;
		s->tid = spare->tid;
	}
	drop_spare(task);
}

/* The current thread has just got a CPU. */
static __always_inline void resume(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	bool hidden, has_stack;
	struct offcpu_wait *wait = come_back(task, 0, &hidden);

	if (hidden)
		note_return(ctx, task);
	if (!wait)
		return;
	/* A wait that began before the recording has no stack yet. */
	has_stack = wait->key.stack.low && !wait->stack_cut;
	report_wait(wait, has_stack ? 0 : take_stack(ctx, wait->key.tgid, SCRATCH_WAITER, true));
}

/* The thread leaves its CPU to wait. Returns when; 0: not known. */
static __always_inline __u64 leave(void *ctx, struct task_struct *task, struct task_struct *next, __u32 letter)
{
	struct thread_state *s = find_storage(task, OFFCPU_BUSY_LEAVING, BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u64 now;

	if (nspares)
		settle(task, s);
	if (!s)
		s = make_spare(task);
	if (!s) {
		lose(OFFCPU_LOST_STATE);
		return 0;
	}
	if (s->left_ns)
		mend(task, s);
	s->woken_ns = 0;
	s->waker_tid = 0;
	s->state = letter;
	s->delay_ns = delay_of(task);
	s->left_ran_ns = task->se.sum_exec_runtime;
	if (stack_at_switch) {
		struct stack_scratch *scratch;

		compare_ahead(task);
		scratch = take_stack(ctx, process_of(task), SCRATCH_WAITER, false);
		s->stack_cut = scratch && scratch->head.user_end == OFFCPU_END_NO_TABLES;
		if (scratch && !(s->sent && is_same_stack(s->stack, scratch->head.id))) /* threads often wait at one place */
			s->sent = send_stack(scratch);
		s->stack = scratch ? scratch->head.id : (struct offcpu_stack_id){};
	}
	now = time_of_leaving(task, next);
	s->left_ns = now;
	return now;
}

/* It leaves for something that is not a wait, or when the recording has ended. */
static void leave_unnoted(struct task_struct *task)
{
	struct thread_state *s = find_storage(task, OFFCPU_BUSY_LEAVING, 0);

	if (nspares)
		settle(task, s);
	if (s && s->left_ns)
		mend(task, s);
}

static void fill_ran(struct task_struct *task, const struct thread_state *s, struct offcpu_ran *ran)
{
	const struct thread_state *spare = find_spare(task);

	ran->kind = OFFCPU_RAN;
	ran->tgid = process_of(task);
	ran->tid = number_of(task);
	if (!ran->tid) {
		ran->tgid = s->tgid;
		ran->tid = s->tid;
	}
	ran->thread_start_ns = task->start_time;
	ran->ran_ns = task->se.sum_exec_runtime - (spare && spare->ran_ns ? spare->ran_ns : s->ran_ns);
	ran->until_ns = wait_end();
}

/* A thread that ends tells how long it ran; if there is no room for that, it is not known. */
static void tell_ran(struct task_struct *task)
{
	struct thread_state *s = find_state(task);
	struct offcpu_ran ran = {};

	if (!s)
		return;
	fill_ran(task, s, &ran);
	bpf_ringbuf_output(&ring, &ran, sizeof(ran), BPF_RB_NO_WAKEUP);
}

/*
 * The thread will never run again. Until here it may have waited, while giving back memory and files, so its process
 * remains a target until its last thread gets here. Threads other than the main thread have already been subtracted
 * from the count.
 */
static void end_thread(struct task_struct *task)
{
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u32 tgid = target_of(task);

	drop_spare(task);
	if (!all_processes && !BPF_CORE_READ_BITFIELD_PROBED(signal, live.counter) &&
	    BPF_CORE_READ_BITFIELD_PROBED(signal, nr_threads) <= 1 && BPF_CORE_READ_BITFIELD_PROBED(leader, exit_state))
		bpf_map_delete_elem(&targets, &tgid);
}

/*
 * The thread leaves its CPU. One that is being woken right now already has another state: the fourth argument is the one
 * in which it decided to leave. Returns the time if it is known.
 */
static __always_inline __u64 leave_cpu(__u64 *ctx, bool preempted, struct task_struct *task, struct task_struct *next)
{
	__u32 state = has_prev_state ? (__u32)ctx[3] : state_of(task);
	__u32 letter = end_ns ? 0 : letter_of(preempted, state);
	__u64 now = 0;

	if (letter)
		now = leave(ctx, task, next, letter);
	else
		leave_unnoted(task);
	if (state & TASK_DEAD && !end_ns) {
		tell_ran(task);
		end_thread(task);
	}
	return now;
}

/* The thread gets a CPU, in the context of the one that leaves it. */
static __always_inline void enter_cpu(struct task_struct *task, __u64 now)
{
	bool hidden;
	struct offcpu_wait *wait = come_back(task, now, &hidden);

	if (wait)
		report_wait(wait, 0);
	if (hidden)
		note_back(task);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 now = 0;

	if (!begin_ns)
		return 0;
	if (is_watched(prev))
		now = leave_cpu(ctx, preempt, prev, next);
	if (end_at_switch)
		enter_cpu(next, now);
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

/*
 * An interrupt's wake-ups seem to come from the thread it interrupted; the loader recognises them by the kernel stack,
 * where it can be taken. Most waits are short and will not be reported, so their wakers' stacks are not taken: only if
 * the thread then waits for a CPU for long is one missing.
 */
static void note_waker(void *ctx, struct thread_state *s, __u64 left)
{
	struct task_struct *waker = (struct task_struct *)bpf_get_current_task_btf();
	struct stack_scratch *scratch;

	s->waker_tgid = process_of(waker);
	s->waker_tid = waker->pid ? number_of(waker) : OFFCPU_INTERRUPT; /* the CPU was idle */
	if (!s->waker_tid)
		s->waker_tid = OFFCPU_OUTSIDE;
	__builtin_memcpy(s->waker_comm, waker->comm, OFFCPU_COMM);
	s->waker_stack = (struct offcpu_stack_id){.low = OFFCPU_STACK_EARLY};
	if (!is_reported(left, s->woken_ns))
		return;
	s->waker_stack.low = 0;
	scratch = take_stack(ctx, s->waker_tgid, SCRATCH_WAKER, false);
	if (scratch) {
		send_stack(scratch);
		s->waker_stack = scratch->head.id;
	}
}

/*
 * A thread may stay in a run queue for a while after it fell asleep (Linux 6.12). If it is moved to another CPU's queue
 * meanwhile, the scheduler has it waiting for a CPU from then on, through all of its sleep
 * (test_threads_that_are_moved_in_their_sleep).
 */
static bool is_misjudged(struct task_struct *asleep)
{
	return asleep->sched_info.last_queued;
}

/*
 * Not loaded when neither wakers nor the time of the wake-up are wanted, and does next to nothing when only those of few
 * threads are: reading another CPU's thread is expensive.
 */
SEC("?tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *p)
{
	struct thread_state *s;
	__u64 left;

	if (only_misjudged && !is_misjudged(p))
		return 0;
	s = find_state(p);
	if (!s)
		return 0;
	left = s->left_ns;
	if (!left || s->woken_ns)
		return 0;
	s->woken_ns = bpf_ktime_get_ns();
	if (want_wakers)
		note_waker(ctx, s, left);
	return 0;
}

static __u64 runs_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.pcount) ? task->sched_info.pcount : 0;
}

static void note_listed(struct task_struct *task)
{
	__u32 tgid = target_of(task);
	__u8 *target = all_processes ? 0 : bpf_map_lookup_elem(&targets, &tgid);

	if (target)
		*target = OFFCPU_TARGET_LISTED;
}

/*
 * At the beginning: notes the threads that already wait; their waits count from now on. A thread that got a CPU
 * meanwhile did not see that it was noted. Then once more for processes that were started while we looked for others:
 * nobody has seen their threads yet.
 */
SEC("iter/task")
int note_waiting(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_state *s;
	__u64 runs, left = noted_all ? bpf_ktime_get_ns() : begin_ns;
	__u32 letter;

	if (!task || !is_watched(task))
		return 0;
	note_listed(task);
	if (FIELD(task, exit_state))
		end_thread(task); /* it ended while nobody watched */
	s = find_state(task);
	if (noted_all && s)
		return 0;
	/* Also for running threads: here it is allocated without a scheduler lock held. Meanwhile it may have left. */
	if (!s && (find_storage(task, OFFCPU_BUSY_NOTING, BPF_LOCAL_STORAGE_GET_F_CREATE) || make_spare(task)))
		s = find_state(task);
	if (s)
		s->ran_ns = task->se.sum_exec_runtime;
	runs = runs_of(task);
	if (!s || !want_waiting || s->left_ns || is_on_cpu(task) || FIELD(task, exit_state))
		return 0;
	letter = letter_of(false, state_of(task));
	if (!letter)
		return 0;
	left |= NOTED;
	s->noted_state = letter;
	s->noted_delay_ns = delay_of(task);
	if (__sync_val_compare_and_swap(&s->left_ns, 0, left))
		return 0;
	if (is_on_cpu(task) || runs_of(task) != runs)
		__sync_val_compare_and_swap(&s->left_ns, left, 0);
	return 0;
}

/* Tells a wait to the loader. False: there is no room, and the iterator will call again. */
static bool list_wait(struct bpf_iter__task *ctx, struct thread_state *s, __u64 left, struct offcpu_open *open)
{
	open->wait.stack_cut = 0;
	if (!bpf_seq_write(ctx->meta->seq, open, sizeof(*open)))
		return true;
	__sync_val_compare_and_swap(&s->left_ns, 0, left);
	return false;
}

/* The wait of a thread that came back while its storage was not to be had, and has not been since. */
static bool list_returned(struct bpf_iter__task *ctx, struct task_struct *task)
{
	struct thread_state *spare = find_spare(task), *s = spare ? find_storage(task, 0, 0) : 0;
	struct offcpu_open open = {};
	__u64 left;

	if (!spare || !spare->back_ns || !s)
		return true;
	left = take_left(s);
	if (!is_reported(left, spare->back_ns))
		return true;
	fill_wait(task, s, left, spare->back_ns, &open.wait);
	use_back_stack(&open.wait, spare);
	return list_wait(ctx, s, left, &open);
}

/* At the end: lists the threads that still wait, unless one has just come back and reported it itself. */
SEC("iter/task")
int list_waiting(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct offcpu_open open = {};
	struct thread_state *s;
	__u64 left, ends = wait_end();

	if (!task || task->flags & PF_KTHREAD || !list_returned(ctx, task))
		return 0;
	s = find_state(task);
	if (!s || !s->left_ns || !is_watched(task))
		return 0;
	if (is_on_cpu(task)) {
		if (ran_since(task, s) > JUST_BACK_NS && take_left(s)) /* nobody saw it come back */
			lose(OFFCPU_LOST_RESUMES);
		return 0;
	}
	open.runs = runs_of(task);
	left = take_left(s);
	if (!is_reported(left, ends))
		return 0;
	fill_wait(task, s, left, ends, &open.wait);
	if (open.wait.stack_cut && !end_at_switch) /* the loader reads it, from outside */
		open.wait.key.stack = (struct offcpu_stack_id){};
	list_wait(ctx, s, left, &open);
	return 0;
}

/* At the end: how long the threads that are still there have been on a CPU. */
SEC("iter/task")
int list_ran(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct offcpu_ran ran = {};
	struct thread_state *s;

	if (!task || task->flags & PF_KTHREAD || FIELD(task, exit_state))
		return 0;
	s = find_state(task);
	if (!s || !is_watched(task))
		return 0;
	fill_ran(task, s, &ran);
	bpf_seq_write(ctx->meta->seq, &ran, sizeof(ran)); /* if there is no room, the iterator will call again */
	return 0;
}
