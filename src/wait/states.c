/* SPDX-License-Identifier: MIT */
#include "wait/states.h"

#include <linux/sched.h>
#include <linux/wait.h>
#include <string.h>

/* In a function of the kernel, in which states, it waits for this. */
struct kernel_function {
	const char *name; /* with '*' at its end: only the beginning of the name */
	const char *states;
	enum wait_kind kind;
};

/* The first one from the inside that is in the table decides. */
static const struct kernel_function functions[] = {
	{"do_freezer_trap", "SD", WAIT_FROZEN},
	{"__refrigerator", "SD", WAIT_FROZEN},
	{"handle_userfault", "SD", WAIT_USERFAULT},
	{"seccomp_do_user_notification", "SD", WAIT_SECCOMP},
	{"request_wait_answer", "SD", WAIT_FUSE},
	{"fuse_get_req", "SD", WAIT_FUSE},
	{"rpc_wait_bit_killable", "SD", WAIT_NFS},
	{"p9_client_rpc", "SD", WAIT_REMOTE},
	{"p9_virtio_zc_request", "SD", WAIT_REMOTE},
	{"wait_for_response", "SD", WAIT_REMOTE}, /* of CIFS */
	{"wait_for_vfork_done", "SD", WAIT_VFORK},
	{"kernel_clone", "D", WAIT_VFORK},
	{"__mutex_lock*", "D", WAIT_KERNEL_LOCK},
	{"rwsem_down_*", "D", WAIT_KERNEL_LOCK},
	{"percpu_rwsem_wait", "D", WAIT_KERNEL_LOCK},
	{"__down*", "D", WAIT_KERNEL_LOCK},
	{"io_schedule*", "D", WAIT_DISK},
	{"folio_wait_*", "D", WAIT_DISK},
	{"wait_on_page_*", "D", WAIT_DISK},
	{"bit_wait_io*", "D", WAIT_DISK},
	{"blk_io_schedule", "D", WAIT_DISK},
	{"submit_bio_wait", "D", WAIT_DISK},
	{"blk_execute_rq", "D", WAIT_DISK},
	{"balance_dirty_pages*", "D", WAIT_DISK},
	{"wb_wait_for_completion", "D", WAIT_DISK},
	{"jbd2_*", "D", WAIT_DISK},
	{"do_fsync", "D", WAIT_DISK},
};

/*
 * The kernel leaves functions that wait for its locks out of the stacks of those who sleep there, as they are part of its scheduler: then
 * the innermost one that is left is who has called them. These sleep so for nothing else.
 */
static const struct kernel_function lockers[] = {
	{"filename_create", "D", WAIT_KERNEL_LOCK}, /* a directory, which is to be changed */
	{"do_mkdirat", "D", WAIT_KERNEL_LOCK}, /* into which it may be inlined */
	{"start_dirop", "D", WAIT_KERNEL_LOCK},
	{"do_unlinkat", "D", WAIT_KERNEL_LOCK},
	{"filename_unlinkat", "D", WAIT_KERNEL_LOCK},
	{"do_rmdir", "D", WAIT_KERNEL_LOCK},
	{"filename_rmdir", "D", WAIT_KERNEL_LOCK},
	{"lock_rename", "D", WAIT_KERNEL_LOCK},
	{"lock_two_directories", "D", WAIT_KERNEL_LOCK},
	{"open_last_lookups", "D", WAIT_KERNEL_LOCK},
	{"path_openat", "D", WAIT_KERNEL_LOCK},
	{"lookup_slow", "D", WAIT_KERNEL_LOCK},
	{"iterate_dir", "D", WAIT_KERNEL_LOCK},
	{"vm_mmap_pgoff", "D", WAIT_KERNEL_LOCK}, /* the memory of the process */
	{"__vm_munmap", "D", WAIT_KERNEL_LOCK},
	{"do_mprotect_pkey", "D", WAIT_KERNEL_LOCK},
	{"lock_mm_and_find_vma", "D", WAIT_KERNEL_LOCK},
};

/* Where pages come from that are waited for as those of a disk are, or by whom else a file system is; the first one from the inside. */
static const struct kernel_function origins[] = {
	{"do_swap_page", "D", WAIT_SWAP},
	{"swap_readpage", "D", WAIT_SWAP},
	{"swap_read_folio", "D", WAIT_SWAP},
	{"nfs_*", "D", WAIT_NFS},
	{"nfs4_*", "D", WAIT_NFS},
	{"fuse_*", "D", WAIT_FUSE},
	{"cifs_*", "D", WAIT_REMOTE},
	{"smb2_*", "D", WAIT_REMOTE},
	{"ceph_*", "D", WAIT_REMOTE},
	{"v9fs_*", "D", WAIT_REMOTE},
};

/* Memory that has to be brought first, whatever for: on any place of the stack. */
static const char *const faults[] = {
	"asm_exc_page_fault", "exc_page_fault", "handle_mm_fault", "do_mem_abort", "do_page_fault", "__do_page_fault",
};

static const struct kernel_function *find_in(const struct stack *kernel, char state, const struct kernel_function *table, size_t n,
					     const char **symbol)
{
	for (size_t i = 0; kernel && i < kernel->len; i++)
		for (size_t k = 0; kernel->data[i].symbol && k < n; k++)
			if (name_is_kernel_function(kernel->data[i].symbol, table[k].name) && strchr(table[k].states, state)) {
				*symbol = kernel->data[i].symbol;
				return &table[k];
			}
	return NULL;
}

static const struct kernel_function *find_locker(const struct stack *kernel, char state, const char **symbol)
{
	struct stack innermost = {.data = kernel ? kernel->data : NULL, .len = kernel && kernel->len};

	return find_in(&innermost, state, lockers, sizeof(lockers) / sizeof(lockers[0]), symbol);
}

static const struct kernel_function *find_function(const struct stack *kernel, char state, const char **symbol)
{
	const struct kernel_function *f = find_in(kernel, state, functions, sizeof(functions) / sizeof(functions[0]), symbol), *origin;
	const char *unused;

	if (!f)
		f = find_locker(kernel, state, symbol);
	if (f && f->kind != WAIT_DISK)
		return f;
	origin = find_in(kernel, state, origins, sizeof(origins) / sizeof(origins[0]), &unused);
	return origin ? origin : f;
}

static bool has_fault(const struct stack *kernel)
{
	for (size_t i = 0; kernel && i < kernel->len; i++)
		for (size_t k = 0; kernel->data[i].symbol && k < sizeof(faults) / sizeof(faults[0]); k++)
			if (name_is_kernel_function(kernel->data[i].symbol, faults[k]))
				return true;
	return false;
}

/* It was there at the instant of the snapshot; what was gathered after that belongs to it only if it did not run in between. */
static bool is_certain(const struct snap_thread *t, bool gathered)
{
	return t->still != STILL_NEVER && !t->woken && (!gathered || t->still_besides);
}

static void set_kind(struct trace_thread *t, enum wait_kind kind, bool certain)
{
	t->wait = (struct wait){.kind = kind, .certain = certain};
}

/* Those that were gathered for it. */
static void set_peers(struct trace_thread *t)
{
	t->wait.peers = t->thread->facts.others;
	t->wait.npeers = t->thread->facts.nothers;
}

static void set_stopped(struct trace_thread *t)
{
	set_kind(t, WAIT_STOPPED, is_certain(t->thread, false));
	t->wait.state.stop_signal = t->thread->facts.stop_signal;
}

static void set_traced(struct trace_thread *t)
{
	set_kind(t, WAIT_TRACED, is_certain(t->thread, t->thread->facts.nothers));
	set_peers(t); /* but it may have other tracees that it waits for, and end by a signal: it is never known to be stuck */
}

/* A process that has ended; a thread that has, while others go on, waits for nobody. */
static void set_ended(struct trace_thread *t)
{
	set_kind(t, WAIT_REAPER, true);
	set_peers(t);
	t->wait.peers_known = t->wait.npeers;
}

static void set_frozen(struct trace_thread *t)
{
	set_kind(t, WAIT_FROZEN, is_certain(t->thread, t->thread->facts.frozen));
	t->wait.state.place = t->thread->facts.frozen ? t->thread->facts.place : NULL;
}

/* One that runs waits for nothing. */
static bool set_ready(struct trace_thread *t)
{
	const struct thread_facts *facts = &t->thread->facts;

	if (!thread_is_ready(t->thread))
		return false;
	set_kind(t, facts->throttled ? WAIT_THROTTLED : WAIT_CPU, t->thread->still != STILL_NEVER);
	if (!facts->throttled && facts->ahead.comm) {
		t->wait.peers = &facts->ahead;
		t->wait.npeers = 1;
	}
	return true;
}

static void set_file(struct trace_thread *t)
{
	const struct thread_facts *facts = &t->thread->facts;

	t->wait.state.place = facts->place;
	t->wait.state.filesystem = facts->filesystem;
	t->wait.state.device = facts->device;
}

/* Without the kernel's stack: what the file is on tells, for a thread that cannot be interrupted. */
static bool set_by_file(struct trace_thread *t)
{
	const char *type = t->thread->facts.filesystem;

	if (t->thread->state != 'D' || !type || !t->thread->facts.place || (t->kernel && t->kernel->len))
		return false;
	set_kind(t, wait_medium_of(type), false);
	set_file(t);
	return true;
}

/* Threads of a pool have the same stack. */
static const struct kernel_wait *find_kernel_wait(const struct trace_thread *t, struct kernel_wait *last)
{
	if (last->kernel != t->kernel || last->state != t->thread->state || !t->kernel) {
		const struct kernel_function *f;

		*last = (struct kernel_wait){.kernel = t->kernel, .state = t->thread->state, .in_fault = has_fault(t->kernel)};
		f = find_function(t->kernel, t->thread->state, &last->symbol);
		last->kind = f ? f->kind : last->in_fault ? WAIT_FAULT : WAIT_NOTHING;
	}
	return last;
}

/* Not every child shares its parent's memory; of clone3() it is not known, as its flags are in memory. */
static bool set_vforking(struct trace_thread *t)
{
	bool restarted;
	const struct syscall_info *call = trace_thread_call(t, &restarted);
	const bool by_flags = call && strcmp(call->name, "clone") == 0, known = call && strcmp(call->name, "clone3") != 0;

	if (by_flags && !(t->thread->syscall.args[0] & CLONE_VFORK))
		return false;
	set_kind(t, WAIT_VFORK, is_certain(t->thread, true));
	set_peers(t);
	t->wait.peers_known = known && t->wait.npeers == 1;
	return true;
}

/* In a system call the file that is known is that of the call, and memory that it uses may be of another. */
static bool tells_of_fault(const struct trace_thread *t)
{
	return t->thread->syscall.state != SYSCALL_IN;
}

/* A page of a file is waited for in the same functions, whatever it is on. */
static enum wait_kind kind_of_fault(const struct trace_thread *t, enum wait_kind kind)
{
	const struct thread_facts *facts = &t->thread->facts;

	if (kind != WAIT_DISK || !facts->filesystem || !tells_of_fault(t))
		return kind;
	return facts->place ? wait_medium_of(facts->filesystem) : WAIT_FAULT;
}

/* Also of a page of which that is not known: then it is what it may be on. */
static bool may_be_of_file(enum wait_kind kind, enum wait_kind by_function)
{
	return kind == WAIT_DISK || kind == WAIT_NFS || kind == WAIT_FUSE || kind == WAIT_REMOTE || by_function == WAIT_DISK;
}

static bool set_by_function(struct trace_thread *t, struct kernel_wait *last)
{
	const struct kernel_wait *found = find_kernel_wait(t, last);

	if (!found->kind)
		return set_by_file(t);
	if (found->kind == WAIT_FROZEN) {
		set_frozen(t);
		return true;
	}
	if (found->kind == WAIT_VFORK)
		return set_vforking(t);
	set_kind(t, found->in_fault ? kind_of_fault(t, found->kind) : found->kind, is_certain(t->thread, false));
	t->wait.state.in_fault = found->in_fault;
	if (t->wait.kind == WAIT_KERNEL_LOCK)
		t->wait.state.place = found->symbol;
	else if (may_be_of_file(t->wait.kind, found->kind) && (!found->in_fault || tells_of_fault(t)))
		set_file(t);
	return true;
}

bool state_wait_by_kernel(struct trace_thread *t, struct kernel_wait *last)
{
	switch (t->thread->state) {
	case 'Z':
	case 'X':
		set_ended(t);
		return true;
	case 'T':
		set_stopped(t);
		return true;
	case 't':
		set_traced(t);
		return true;
	case 'R':
		return set_ready(t);
	default:
		break;
	}
	if (t->thread->facts.frozen) {
		set_frozen(t);
		return true;
	}
	return set_by_function(t, last);
}

/* Which of its children a thread waits for was seen when they were gathered. */
static void set_child(struct trace_thread *t, bool any, bool in_group)
{
	const struct thread_facts *facts = &t->thread->facts;

	set_kind(t, WAIT_CHILD, is_certain(t->thread, true) && facts->has_children);
	set_peers(t);
	t->wait.state.any_child = any;
	t->wait.state.child_group = in_group;
	t->wait.state.children = facts->total;
	t->wait.state.children_known = facts->has_children;
	t->wait.peers_known = facts->has_children && facts->nothers == facts->total && !in_group;
}

static void set_wait4(struct trace_thread *t, struct mem *mem)
{
	const int32_t which = (int32_t)t->thread->syscall.args[0];

	set_child(t, which <= 0, which <= 0 && which != -1);
}

static void set_waitid(struct trace_thread *t, struct mem *mem)
{
	const uint64_t type = t->thread->syscall.args[0];

	set_child(t, type == P_ALL || type == P_PGID, type == P_PGID);
}

/* State D is what else there would be in the kernel's stack; but the kernel may be short of memory for a child of any kind. */
static void set_vfork(struct trace_thread *t, struct mem *mem)
{
	if (t->thread->state == 'D')
		set_vforking(t);
}

static void set_time(struct trace_thread *t, struct mem *mem)
{
	set_kind(t, WAIT_TIME, is_certain(t->thread, false));
}

static void set_signal(struct trace_thread *t, struct mem *mem)
{
	set_kind(t, WAIT_SIGNAL, is_certain(t->thread, false));
}

static void set_signals(struct trace_thread *t, struct mem *mem)
{
	uint64_t set = 0;

	set_signal(t, mem);
	if (mem_read_exact(mem, t->thread->syscall.args[0], &set, sizeof(set)))
		t->wait.state.signals = set;
}

/* A set of descriptors without any is a way to sleep. */
static void set_poll(struct trace_thread *t, struct mem *mem)
{
	if (!t->thread->syscall.args[1])
		(t->thread->syscall.args[2] ? set_time : set_signal)(t, mem);
}

static void set_old_poll(struct trace_thread *t, struct mem *mem)
{
	if (!t->thread->syscall.args[1])
		((int32_t)t->thread->syscall.args[2] >= 0 ? set_time : set_signal)(t, mem);
}

static void set_select(struct trace_thread *t, struct mem *mem)
{
	const uint64_t *args = t->thread->syscall.args;

	if (!(int32_t)args[0] || (!args[1] && !args[2] && !args[3]))
		(args[4] ? set_time : set_signal)(t, mem);
}

static void set_object(struct trace_thread *t, enum wait_kind kind)
{
	const struct thread_facts *facts = &t->thread->facts;

	set_kind(t, kind, is_certain(t->thread, false));
	set_peers(t);
	t->wait.state.id = (int32_t)t->thread->syscall.args[0];
	t->wait.state.index = -1;
	t->wait.state.has_key = facts->has_key;
	t->wait.state.key = facts->key;
	t->wait.state.place = facts->place;
}

/* Of several operations that are to be done together it is not known which one has to wait. */
static void set_semaphore(struct trace_thread *t, struct mem *mem)
{
	uint16_t number;

	set_object(t, WAIT_SYSV_SEMAPHORE);
	if (t->thread->syscall.args[2] == 1 && mem_read_exact(mem, t->thread->syscall.args[1], &number, sizeof(number)))
		t->wait.state.index = number;
}

static void set_sysv_message(struct trace_thread *t, struct mem *mem)
{
	set_object(t, WAIT_SYSV_MESSAGE);
}

static void set_sysv_room(struct trace_thread *t, struct mem *mem)
{
	set_object(t, WAIT_SYSV_ROOM);
}

static void set_message(struct trace_thread *t, struct mem *mem)
{
	set_object(t, WAIT_MESSAGE);
}

static void set_room(struct trace_thread *t, struct mem *mem)
{
	set_object(t, WAIT_ROOM);
}

static const struct {
	const char *name;
	void (*set)(struct trace_thread *t, struct mem *mem); /* leaves t->wait as it is where it is something else */
} calls[] = {
	{"nanosleep", set_time},
	{"clock_nanosleep", set_time},
	{"clock_nanosleep_time64", set_time},
	{"ppoll", set_poll},
	{"ppoll_time64", set_poll},
	{"poll", set_old_poll},
	{"select", set_select},
	{"_newselect", set_select},
	{"pselect6", set_select},
	{"pselect6_time64", set_select},
	{"pause", set_signal},
	{"sigsuspend", set_signal},
	{"rt_sigsuspend", set_signal},
	{"rt_sigtimedwait", set_signals},
	{"rt_sigtimedwait_time64", set_signals},
	{"wait4", set_wait4},
	{"waitpid", set_wait4},
	{"waitid", set_waitid},
	{"vfork", set_vfork},
	{"clone", set_vfork},
	{"clone3", set_vfork},
	{"semop", set_semaphore},
	{"semtimedop", set_semaphore},
	{"semtimedop_time64", set_semaphore},
	{"msgrcv", set_sysv_message},
	{"msgsnd", set_sysv_room},
	{"mq_timedreceive", set_message},
	{"mq_timedreceive_time64", set_message},
	{"mq_timedsend", set_room},
	{"mq_timedsend_time64", set_room},
};

bool state_wait_by_call(struct trace_thread *t, struct mem *mem)
{
	bool restarted;
	const struct syscall_info *call = t->thread->state == 'R' ? NULL : trace_thread_call(t, &restarted);

	for (size_t i = 0; call && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (call->name[0] == calls[i].name[0] && strcmp(call->name, calls[i].name) == 0) {
			calls[i].set(t, mem);
			break;
		}
	return t->wait.kind != WAIT_NOTHING;
}
