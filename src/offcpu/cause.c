/* SPDX-License-Identifier: MIT */
#include "offcpu/cause.h"

#include <string.h>

#include "offcpu/name_kinds.h"
#include "offcpu/runtime_waits.h"

enum { NEAR_FRAMES = 16 }; /* the innermost ones of the user stack, which tell what a futex is */

struct kernel_function {
	const char *name; /* with '*' at its end: only the beginning of the name */
	enum offcpu_cause cause;
};

/* Memory that had to be brought first, whatever for: on any place of the stack it is the cause. */
static const struct kernel_function faults[] = {
	{"asm_exc_page_fault", OFFCPU_CAUSE_FAULT},
	{"exc_page_fault", OFFCPU_CAUSE_FAULT},
	{"handle_mm_fault", OFFCPU_CAUSE_FAULT},
	{"handle_userfault", OFFCPU_CAUSE_FAULT},
	{"do_mem_abort", OFFCPU_CAUSE_FAULT},
	{"do_page_fault", OFFCPU_CAUSE_FAULT},
	{NULL, OFFCPU_CAUSE_OTHER},
};

/* The first function from the inside that is in the table decides. */
static const struct kernel_function functions[] = {
	{"__mutex_lock*", OFFCPU_CAUSE_LOCK},
	{"rwsem_down_*", OFFCPU_CAUSE_LOCK},
	{"percpu_rwsem_wait", OFFCPU_CAUSE_LOCK},
	{"rt_mutex_*", OFFCPU_CAUSE_LOCK},
	{"__rt_mutex_*", OFFCPU_CAUSE_LOCK},
	{"futex_lock_pi", OFFCPU_CAUSE_LOCK},
	{"flock_lock_inode*", OFFCPU_CAUSE_LOCK},
	{"locks_lock_inode_wait", OFFCPU_CAUSE_LOCK},
	{"fcntl_setlk", OFFCPU_CAUSE_LOCK},
	{"do_semtimedop", OFFCPU_CAUSE_LOCK},
	{"__do_semtimedop", OFFCPU_CAUSE_LOCK},
	{"futex_wait", OFFCPU_CAUSE_FUTEX},
	{"__futex_wait", OFFCPU_CAUSE_FUTEX},
	{"futex_wait_queue*", OFFCPU_CAUSE_FUTEX},
	{"futex_wait_requeue_pi", OFFCPU_CAUSE_FUTEX},
	{"do_futex", OFFCPU_CAUSE_FUTEX},
	{"io_schedule*", OFFCPU_CAUSE_DISK},
	{"folio_wait_*", OFFCPU_CAUSE_DISK},
	{"wait_on_page_*", OFFCPU_CAUSE_DISK},
	{"__wait_on_buffer", OFFCPU_CAUSE_DISK},
	{"submit_bio_wait", OFFCPU_CAUSE_DISK},
	{"balance_dirty_pages*", OFFCPU_CAUSE_DISK},
	{"wb_wait_for_completion", OFFCPU_CAUSE_DISK},
	{"request_wait_answer", OFFCPU_CAUSE_DISK}, /* of a file system in user space */
	{"jbd2_*", OFFCPU_CAUSE_DISK},
	{"ext4_*", OFFCPU_CAUSE_DISK},
	{"xfs_*", OFFCPU_CAUSE_DISK},
	{"btrfs_*", OFFCPU_CAUSE_DISK},
	{"blkdev_*", OFFCPU_CAUSE_DISK},
	{"do_fsync", OFFCPU_CAUSE_DISK},
	{"rpc_wait_bit_killable", OFFCPU_CAUSE_NETWORK},
	{"sk_wait_data", OFFCPU_CAUSE_NETWORK},
	{"tcp_*", OFFCPU_CAUSE_NETWORK},
	{"udp_*", OFFCPU_CAUSE_NETWORK},
	{"udpv6_*", OFFCPU_CAUSE_NETWORK},
	{"inet_*", OFFCPU_CAUSE_NETWORK},
	{"raw_recvmsg", OFFCPU_CAUSE_NETWORK},
	{"netlink_*", OFFCPU_CAUSE_NETWORK},
	{"packet_recvmsg", OFFCPU_CAUSE_NETWORK},
	{"pipe_*", OFFCPU_CAUSE_PIPE},
	{"anon_pipe_*", OFFCPU_CAUSE_PIPE},
	{"fifo_*", OFFCPU_CAUSE_PIPE},
	{"wait_for_partner", OFFCPU_CAUSE_PIPE},
	{"unix_*", OFFCPU_CAUSE_PIPE},
	{"do_msgrcv", OFFCPU_CAUSE_PIPE},
	{"do_msgsnd", OFFCPU_CAUSE_PIPE},
	{"do_mq_*", OFFCPU_CAUSE_PIPE},
	{"ep_poll", OFFCPU_CAUSE_EVENTS},
	{"do_epoll_wait", OFFCPU_CAUSE_EVENTS},
	{"poll_schedule_timeout", OFFCPU_CAUSE_EVENTS},
	{"do_poll", OFFCPU_CAUSE_EVENTS},
	{"do_sys_poll", OFFCPU_CAUSE_EVENTS},
	{"do_select", OFFCPU_CAUSE_EVENTS},
	{"io_cqring_wait*", OFFCPU_CAUSE_EVENTS},
	{"read_events", OFFCPU_CAUSE_EVENTS},
	{"eventfd_read", OFFCPU_CAUSE_EVENTS},
	{"inotify_read", OFFCPU_CAUSE_EVENTS},
	{"fanotify_read", OFFCPU_CAUSE_EVENTS},
	{"do_nanosleep", OFFCPU_CAUSE_TIMER},
	{"hrtimer_nanosleep", OFFCPU_CAUSE_TIMER},
	{"timerfd_read*", OFFCPU_CAUSE_TIMER},
	{"msleep*", OFFCPU_CAUSE_TIMER},
	{"do_wait", OFFCPU_CAUSE_CHILD},
	{"__do_wait", OFFCPU_CAUSE_CHILD},
	{"kernel_wait4", OFFCPU_CAUSE_CHILD},
	{"kernel_waitid", OFFCPU_CAUSE_CHILD},
	{"kernel_clone", OFFCPU_CAUSE_CHILD}, /* vfork() */
	{"do_sigtimedwait", OFFCPU_CAUSE_SIGNAL},
	{"sigsuspend", OFFCPU_CAUSE_SIGNAL},
	{"signalfd_read*", OFFCPU_CAUSE_SIGNAL},
	{"__x64_sys_pause", OFFCPU_CAUSE_SIGNAL},
	{"__do_sys_pause", OFFCPU_CAUSE_SIGNAL},
	{"get_signal", OFFCPU_CAUSE_SIGNAL},
	{"n_tty_*", OFFCPU_CAUSE_TERMINAL},
	{"tty_*", OFFCPU_CAUSE_TERMINAL},
	{NULL, OFFCPU_CAUSE_OTHER},
};

static enum offcpu_cause find_cause(const struct stack *kernel, const struct kernel_function *table)
{
	for (size_t i = 0; kernel && i < kernel->len; i++)
		for (const struct kernel_function *f = table; kernel->data[i].symbol && f->name; f++)
			if (name_is_kernel_function(kernel->data[i].symbol, f->name))
				return f->cause;
	return OFFCPU_CAUSE_OTHER;
}

static enum offcpu_cause find_runtime(const struct stack *user)
{
	size_t frames;

	switch (offcpu_runtime_wait(user, &frames)) {
	case RUNTIME_WAIT_LOCK:
		return OFFCPU_CAUSE_LOCK;
	case RUNTIME_WAIT_CONDITION:
	case RUNTIME_WAIT_SEMAPHORE:
	case RUNTIME_WAIT_OTHERS:
		return OFFCPU_CAUSE_CONDITION;
	case RUNTIME_WAIT_SLEEP:
		return OFFCPU_CAUSE_TIMER;
	case RUNTIME_WAIT_UNKNOWN:
		break;
	}
	return OFFCPU_CAUSE_FUTEX;
}

/* A lock that is made of a condition variable is a lock. */
static enum offcpu_cause find_futex(const struct stack *user)
{
	enum offcpu_cause cause = find_runtime(user);

	if (cause != OFFCPU_CAUSE_FUTEX)
		return cause;
	for (size_t i = 0; user && i < user->len && i < NEAR_FRAMES; i++) {
		unsigned kinds = offcpu_frame_kinds(&user->data[i]);

		if (kinds & NAME_LOCK)
			return OFFCPU_CAUSE_LOCK;
		if (kinds & NAME_SLEEP)
			return OFFCPU_CAUSE_TIMER;
		if (kinds & (NAME_CONDITION | NAME_SEMAPHORE | NAME_OTHERS))
			cause = OFFCPU_CAUSE_CONDITION;
	}
	return cause;
}

/* By the function of the C library, where nothing is known of the kernel. */
static enum offcpu_cause find_call(const struct stack *user)
{
	static const struct {
		const char *name;
		enum offcpu_cause cause;
	} calls[] = {
		{"clock_nanosleep", OFFCPU_CAUSE_TIMER},
		{"nanosleep", OFFCPU_CAUSE_TIMER},
		{"epoll_wait", OFFCPU_CAUSE_EVENTS},
		{"epoll_pwait", OFFCPU_CAUSE_EVENTS},
		{"epoll_pwait2", OFFCPU_CAUSE_EVENTS},
		{"poll", OFFCPU_CAUSE_EVENTS},
		{"ppoll", OFFCPU_CAUSE_EVENTS},
		{"select", OFFCPU_CAUSE_EVENTS},
		{"pselect", OFFCPU_CAUSE_EVENTS},
		{"wait4", OFFCPU_CAUSE_CHILD},
		{"waitpid", OFFCPU_CAUSE_CHILD},
		{"waitid", OFFCPU_CAUSE_CHILD},
		{"pause", OFFCPU_CAUSE_SIGNAL},
		{"sigsuspend", OFFCPU_CAUSE_SIGNAL},
		{"sigwait", OFFCPU_CAUSE_SIGNAL},
		{"sigwaitinfo", OFFCPU_CAUSE_SIGNAL},
		{"sigtimedwait", OFFCPU_CAUSE_SIGNAL},
		{"flock", OFFCPU_CAUSE_LOCK},
		{"fsync", OFFCPU_CAUSE_DISK},
		{"fdatasync", OFFCPU_CAUSE_DISK},
	};
	size_t i = 0;

	while (user && i < user->len && offcpu_frame_kinds(&user->data[i]) & NAME_PLUMBING)
		i++;
	for (size_t k = 0; user && i < user->len && user->data[i].symbol && k < sizeof(calls) / sizeof(calls[0]); k++)
		if (name_is_library_function(user->data[i].symbol, calls[k].name))
			return calls[k].cause;
	return OFFCPU_CAUSE_OTHER;
}

enum offcpu_cause offcpu_cause_of(const struct offcpu_row *row)
{
	enum offcpu_cause cause, call = OFFCPU_CAUSE_OTHER, futex;

	if (row->state == 'R')
		return OFFCPU_CAUSE_CPU;
	cause = find_cause(row->kernel, faults);
	if (cause == OFFCPU_CAUSE_OTHER)
		cause = find_cause(row->kernel, functions);
	if (!row->kernel || cause == OFFCPU_CAUSE_EVENTS)
		call = find_call(row->user);
	if (!row->kernel || call == OFFCPU_CAUSE_SIGNAL) /* aarch64 has no pause(): it is a poll of nothing */
		cause = call;
	if (cause != OFFCPU_CAUSE_FUTEX && (cause != OFFCPU_CAUSE_OTHER || row->kernel))
		return cause;
	futex = find_futex(row->user);
	return futex == OFFCPU_CAUSE_FUTEX ? cause : futex;
}

enum offcpu_cause offcpu_cause_of_wait(enum wait_kind kind)
{
	static const enum offcpu_cause causes[WAIT_KIND_COUNT] = {
		[WAIT_MUTEX] = OFFCPU_CAUSE_LOCK,
		[WAIT_READ_LOCK] = OFFCPU_CAUSE_LOCK,
		[WAIT_WRITE_LOCK] = OFFCPU_CAUSE_LOCK,
		[WAIT_ONCE] = OFFCPU_CAUSE_LOCK,
		[WAIT_STREAM] = OFFCPU_CAUSE_LOCK,
		[WAIT_FILE_LOCK] = OFFCPU_CAUSE_LOCK,
		[WAIT_KERNEL_LOCK] = OFFCPU_CAUSE_LOCK,
		[WAIT_GIL] = OFFCPU_CAUSE_LOCK,
		[WAIT_PYTHON_LOCK] = OFFCPU_CAUSE_LOCK,
		[WAIT_PYTHON_RLOCK] = OFFCPU_CAUSE_LOCK,
		[WAIT_MONITOR] = OFFCPU_CAUSE_LOCK,
		[WAIT_JAVA_LOCK] = OFFCPU_CAUSE_LOCK,
		[WAIT_GO_LOCK] = OFFCPU_CAUSE_LOCK,
		[WAIT_CONDITION] = OFFCPU_CAUSE_CONDITION,
		[WAIT_SEMAPHORE] = OFFCPU_CAUSE_CONDITION,
		[WAIT_BARRIER] = OFFCPU_CAUSE_CONDITION,
		[WAIT_JOIN] = OFFCPU_CAUSE_CONDITION,
		[WAIT_FUTURE] = OFFCPU_CAUSE_CONDITION,
		[WAIT_PARKED] = OFFCPU_CAUSE_CONDITION,
		[WAIT_CHANNEL] = OFFCPU_CAUSE_CONDITION,
		[WAIT_CHANNEL_ROOM] = OFFCPU_CAUSE_CONDITION,
		[WAIT_SYSV_SEMAPHORE] = OFFCPU_CAUSE_CONDITION,
		[WAIT_PYTHON_CONDITION] = OFFCPU_CAUSE_CONDITION,
		[WAIT_PYTHON_EVENT] = OFFCPU_CAUSE_CONDITION,
		[WAIT_PYTHON_SEMAPHORE] = OFFCPU_CAUSE_CONDITION,
		[WAIT_PYTHON_BARRIER] = OFFCPU_CAUSE_CONDITION,
		[WAIT_PYTHON_ITEM] = OFFCPU_CAUSE_CONDITION,
		[WAIT_PYTHON_ROOM] = OFFCPU_CAUSE_CONDITION,
		[WAIT_PYTHON_DONE] = OFFCPU_CAUSE_CONDITION,
		[WAIT_PYTHON_FUTURE] = OFFCPU_CAUSE_CONDITION,
		[WAIT_PYTHON_JOIN] = OFFCPU_CAUSE_CONDITION,
		[WAIT_NOTIFICATION] = OFFCPU_CAUSE_CONDITION,
		[WAIT_JAVA_CONDITION] = OFFCPU_CAUSE_CONDITION,
		[WAIT_JAVA_SEMAPHORE] = OFFCPU_CAUSE_CONDITION,
		[WAIT_JAVA_LATCH] = OFFCPU_CAUSE_CONDITION,
		[WAIT_JAVA_PARK] = OFFCPU_CAUSE_CONDITION,
		[WAIT_JAVA_JOIN] = OFFCPU_CAUSE_CONDITION,
		[WAIT_GO_WORK] = OFFCPU_CAUSE_CONDITION,
		[WAIT_GO_GOROUTINE] = OFFCPU_CAUSE_CONDITION,
		[WAIT_GO_START] = OFFCPU_CAUSE_CONDITION,
		[WAIT_GO_STOP] = OFFCPU_CAUSE_CONDITION,
		[WAIT_GO_TEMPLATE] = OFFCPU_CAUSE_CONDITION,
		[WAIT_GO_NOTE] = OFFCPU_CAUSE_CONDITION,
		[WAIT_FUTEX] = OFFCPU_CAUSE_FUTEX,
		[WAIT_SYNC] = OFFCPU_CAUSE_DISK,
		[WAIT_DISK] = OFFCPU_CAUSE_DISK,
		[WAIT_NFS] = OFFCPU_CAUSE_DISK,
		[WAIT_FUSE] = OFFCPU_CAUSE_DISK,
		[WAIT_REMOTE] = OFFCPU_CAUSE_DISK,
		[WAIT_FAULT] = OFFCPU_CAUSE_FAULT,
		[WAIT_SWAP] = OFFCPU_CAUSE_FAULT,
		[WAIT_USERFAULT] = OFFCPU_CAUSE_FAULT,
		[WAIT_EVENTS] = OFFCPU_CAUSE_EVENTS,
		[WAIT_SYSV_MESSAGE] = OFFCPU_CAUSE_PIPE,
		[WAIT_SYSV_ROOM] = OFFCPU_CAUSE_PIPE,
		[WAIT_MESSAGE] = OFFCPU_CAUSE_PIPE,
		[WAIT_ROOM] = OFFCPU_CAUSE_PIPE,
		[WAIT_TIME] = OFFCPU_CAUSE_TIMER,
		[WAIT_GO_MONITOR] = OFFCPU_CAUSE_TIMER,
		[WAIT_CHILD] = OFFCPU_CAUSE_CHILD,
		[WAIT_VFORK] = OFFCPU_CAUSE_CHILD,
		[WAIT_SIGNAL] = OFFCPU_CAUSE_SIGNAL,
		[WAIT_GO_SIGNAL] = OFFCPU_CAUSE_SIGNAL,
	};

	return causes[kind] ? causes[kind] : OFFCPU_CAUSE_OTHER; /* no cause is 0 but that of those who were ready */
}
