/* SPDX-License-Identifier: MIT */
/* Of threads that are blocked: which children they wait for, who traces them, which file, object or control group it is about. */
#include <errno.h>
#include <linux/wait.h>
#include <sched.h>
#include <string.h>

#include "capture/besides.h"
#include "capture/file_source.h"
#include "capture/take.h"
#include "kernel/page_faults.h"
#include "proc/file_place.h"
#include "proc/freezer.h"
#include "proc/relatives.h"
#include "proc/sysvipc.h"
#include "proc/task.h"
#include "target/filesystems.h"

enum {
	MOST_OTHERS = 64,  /* that are kept of the children */
	MOST_FILES = 256,  /* threads whose files are looked at */
	MOST_CPUS = 256,   /* threads whose CPU is asked for */
	MOST_FRAMES = 8,   /* innermost ones that are looked through */
};

/* Names of functions of the kernel, which are the same ones in equal stacks: what was found out about the last thread may be true for the next. */
struct kernel_stack {
	const char *frames[MOST_FRAMES];
	uint32_t len;
	bool waits_for_file;
};

/* A process whose threads are gone through. */
struct gathering {
	const struct capture *capture;
	const struct process *process;
	struct mount_list mounts; /* of the process */
	struct snapshot *snap;
	struct tid_list children; /* of the process, */
	bool has_children;	  /* once they were listed */
	unsigned files, cpus;	  /* that were looked at */
	struct page_faults faults;
	bool has_faults;	  /* they were asked for */
	bool can_compare;	  /* kcmp() knows its numbers */
	const char *frozen;	  /* the control group; NULL: it is not frozen */
	struct kernel_stack stack; /* of the last thread whose was looked at */
	const struct syscall_info *last_call; /* likewise, */
	const struct call_facts *last_facts;  /* and what is gathered for it; NULL: nothing */
	bool failed;		  /* memory is exhausted */
};

static const struct syscall_info *call_of(const struct gathering *g, const struct snap_thread *t)
{
	return t->syscall.state == SYSCALL_IN ? arch_syscall(snapshot_arch_of(g->snap, t), t->syscall.nr) : NULL;
}

static bool is_in(const struct snap_thread *t, const char *name)
{
	for (uint32_t i = 0; t->kernel_text && i < t->nkernel && i < MOST_FRAMES; i++)
		if (t->kernel_text[i] && name_is_kernel_function(t->kernel_text[i], name))
			return true;
	return false;
}

/* Adds another one to those of the thread, for which there is room. */
static void add_other(struct gathering *g, struct wait_peer *others, struct snap_thread *t, pid_t pid, const struct task_stat *stat)
{
	const char *comm = arena_intern(g->snap->arena, stat->name);

	others[t->facts.nothers++] = (struct wait_peer){.pid = pid, .comm = comm, .state = stat->state};
	g->failed |= !comm;
}

static struct wait_peer *make_room(struct gathering *g, struct snap_thread *t, size_t n)
{
	struct wait_peer *others = arena_alloc(g->snap->arena, n * sizeof(*others));

	t->facts.others = others;
	t->facts.nothers = 0;
	g->failed |= !others;
	return others;
}

/* The one that it is about, if it is there. */
static void set_other(struct gathering *g, struct snap_thread *t, pid_t pid)
{
	struct task_stat stat;
	struct wait_peer *other;

	if (pid <= 0 || process_glance(pid, &stat) < 0)
		return;
	other = make_room(g, t, 1);
	if (other)
		add_other(g, other, t, pid, &stat);
}

/* Children */

static bool list_children(struct gathering *g)
{
	if (!g->has_children) {
		int rc = process_children(g->process, &g->children);

		g->failed |= rc == -ENOMEM;
		g->has_children = rc == 0;
	}
	return g->has_children;
}

/* Those of a group of processes, which has the number of our namespace; 0: all of them. */
static void set_children(struct gathering *g, struct snap_thread *t, pid_t group)
{
	const size_t n = list_children(g) ? g->children.len : 0;
	struct wait_peer *others = make_room(g, t, (n < MOST_OTHERS ? n : MOST_OTHERS) + 1);
	struct task_stat stat;

	for (size_t i = 0; others && i < n; i++) {
		const pid_t pid = g->children.data[i];
		const bool wanted = t->facts.nothers < MOST_OTHERS || group;

		if (wanted && (process_glance(pid, &stat) < 0 || (group && stat.group != group)))
			continue;
		if (t->facts.nothers < MOST_OTHERS)
			add_other(g, others, t, pid, &stat);
		t->facts.total++;
	}
	t->facts.has_children = g->has_children;
}

/* Our number for the child that has this one in the namespace of the process; 0: there is none. */
static pid_t find_child(struct gathering *g, pid_t number)
{
	unsigned levels = 0, namespaces = 0;

	if (!g->snap->inner_pid)
		return number;
	process_innermost_number(g->snap->pid, &levels);
	for (size_t i = 0; list_children(g) && i < g->children.len; i++)
		if (process_innermost_number(g->children.data[i], &namespaces) == number && namespaces == levels)
			return g->children.data[i];
	return 0;
}

static void set_child(struct gathering *g, struct snap_thread *t, pid_t pid)
{
	set_other(g, t, pid);
	t->facts.total = t->facts.nothers;
	t->facts.has_children = pid > 0;
}

/* Groups have numbers of the namespace, too. */
static void set_group(struct gathering *g, struct snap_thread *t, pid_t group)
{
	struct task_stat stat;

	if (!group && process_glance(g->snap->pid, &stat) == 0)
		group = stat.group;
	else if (g->snap->inner_pid)
		group = 0;
	if (group)
		set_children(g, t, group);
}

static void gather_wait4(struct gathering *g, struct snap_thread *t)
{
	const pid_t pid = (pid_t)t->syscall.args[0];

	if (pid > 0)
		set_child(g, t, find_child(g, pid));
	else if (pid == -1)
		set_children(g, t, 0);
	else
		set_group(g, t, pid ? -pid : 0);
}

static void gather_waitid(struct gathering *g, struct snap_thread *t)
{
	const pid_t number = (pid_t)t->syscall.args[1];

	switch (t->syscall.args[0]) {
	case P_ALL:
		set_children(g, t, 0);
		break;
	case P_PID:
		set_child(g, t, find_child(g, number));
		break;
	case P_PGID:
		set_group(g, t, number);
		break;
	case P_PIDFD:
		set_child(g, t, process_of_pidfd(g->process, t->tid, (int)t->syscall.args[1]));
		break;
	default:
		break;
	}
}

/* The flags of clone3() are in memory. */
static void gather_vfork(struct gathering *g, struct snap_thread *t)
{
	const struct syscall_info *call = call_of(g, t);
	const bool copies = strcmp(call->name, "clone") == 0 && !(t->syscall.args[0] & CLONE_VM);

	if (t->state == 'D')
		set_other(g, t, process_vforked_child(g->process, t->tid, g->can_compare && !copies));
}

/* Objects */

static void set_object(struct gathering *g, struct snap_thread *t, const struct sysv_object *object)
{
	t->facts.has_key = true;
	t->facts.key = object->key;
	set_other(g, t, object->last);
}

static void gather_semaphore(struct gathering *g, struct snap_thread *t)
{
	struct snapshot_mem memory;
	struct sysv_object object;
	uint16_t number;
	bool one;

	snapshot_mem_init(&memory, g->snap, t);
	/* What was copied for it belongs to the memory of the snapshot only when that is done. */
	one = t->syscall.args[2] == 1 && (mem_copy_read(&t->waited, t->syscall.args[1], &number, sizeof(number)) == sizeof(number) ||
					  mem_read_exact(&memory.mem, t->syscall.args[1], &number, sizeof(number)));
	if (sysv_semaphore_read(g->process, (int)t->syscall.args[0], one ? number : -1, &object))
		set_object(g, t, &object);
}

/* Who waits for a message waits for a sender. */
static void gather_message(struct gathering *g, struct snap_thread *t)
{
	struct sysv_object object;

	if (sysv_queue_read(g->process, (int)t->syscall.args[0], true, &object))
		set_object(g, t, &object);
}

static void gather_room(struct gathering *g, struct snap_thread *t)
{
	struct sysv_object object;

	if (sysv_queue_read(g->process, (int)t->syscall.args[0], false, &object))
		set_object(g, t, &object);
}

static bool set_place(struct snap_thread *t, struct file_place place)
{
	t->facts.place = place.path;
	t->facts.filesystem = place.filesystem;
	t->facts.device = place.device;
	return true;
}

/* Its first argument is a descriptor. */
static void gather_file(struct gathering *g, struct snap_thread *t)
{
	struct file_place place;

	if (g->files++ < MOST_FILES && file_place_read(&g->mounts, t->tid, (int)t->syscall.args[0], g->snap->arena, &place))
		set_place(t, place);
}

static bool find_mapped(struct gathering *g, const struct map_entry *map, const char *path, struct file_place *out)
{
	return g->files++ < MOST_FILES && file_place_of_device(&g->mounts, map->dev_major, map->dev_minor, path, g->snap->arena, out);
}

/* The address of the page that a thread waits for; 0: not known. */
static uint64_t find_fault(struct gathering *g, pid_t tid)
{
	struct err why;

	if (!g->has_faults && file_source_may_be_bpf(g->capture))
		page_faults_of(g->snap->pid, &why, &g->faults);
	g->has_faults = true;
	for (size_t i = 0; i < g->faults.len; i++)
		if (g->faults.data[i].tid == (uint64_t)tid)
			return g->faults.data[i].address;
	return 0;
}

/* The file of which it waits for a page, if that is what it waits for. Where no address tells it, it may be any that is mapped. */
static bool gather_mapped(struct gathering *g, struct snap_thread *t)
{
	const uint64_t address = find_fault(g, t->tid);
	const struct map_entry *map = address ? maps_find(&g->snap->maps, address) : NULL;
	struct file_place place;

	if (address)
		return map && map->inode && find_mapped(g, map, map->path, &place) && set_place(t, place);
	for (size_t i = 0; i < g->snap->maps.len; i++) {
		map = &g->snap->maps.data[i];
		if (map->inode && !filesystems_is_local(map->dev_major, map->dev_minor) && find_mapped(g, map, NULL, &place) &&
		    wait_medium_of(place.filesystem) != WAIT_DISK)
			return set_place(t, place);
	}
	return false;
}

static const struct call_facts {
	const char *name;
	void (*gather)(struct gathering *g, struct snap_thread *t);
} calls[] = {
	{"wait4", gather_wait4},
	{"waitpid", gather_wait4},
	{"waitid", gather_waitid},
	{"vfork", gather_vfork},
	{"clone", gather_vfork},
	{"clone3", gather_vfork},
	{"semop", gather_semaphore},
	{"semtimedop", gather_semaphore},
	{"semtimedop_time64", gather_semaphore},
	{"msgrcv", gather_message},
	{"msgsnd", gather_room},
	{"mq_timedreceive", gather_file},
	{"mq_timedreceive_time64", gather_file},
	{"mq_timedsend", gather_file},
	{"mq_timedsend_time64", gather_file},
};

static bool is_in_file_wait(const struct snap_thread *t)
{
	static const char *const functions[] = {"request_wait_answer", "rpc_wait_bit_killable", "p9_client_rpc", "wait_for_response"};
	bool waits = false;

	for (size_t i = 0; !waits && i < sizeof(functions) / sizeof(functions[0]); i++)
		waits = is_in(t, functions[i]);
	return waits;
}

/* It may be a file that it waits for: others show other states, and other functions of the kernel. */
static bool may_wait_for_file(struct gathering *g, const struct snap_thread *t)
{
	struct kernel_stack *last = &g->stack;
	const uint32_t len = t->nkernel < MOST_FRAMES ? t->nkernel : MOST_FRAMES;

	if (t->state == 'D' || !t->kernel_text)
		return t->state == 'D';
	if (len != last->len || memcmp(t->kernel_text, last->frames, len * sizeof(*last->frames)) != 0) {
		last->waits_for_file = is_in_file_wait(t);
		last->len = len;
		memcpy(last->frames, t->kernel_text, len * sizeof(*last->frames));
	}
	return last->waits_for_file;
}

static bool takes_descriptor(const struct syscall_info *call)
{
	return call->args && strncmp(call->args, "fd", 2) == 0 && (!call->args[2] || call->args[2] == ',');
}

/* What its path is on, if it was copied: wait/ compares that with what it waits for, as symbolic links are not followed. */
static bool gather_path(struct gathering *g, struct snap_thread *t)
{
	struct file_place place;

	for (size_t i = 0; i < g->snap->waits.len; i++) {
		const struct snap_wait *w = &g->snap->waits.data[i];

		if (w->tid != t->tid)
			continue;
		if (w->kind != WAIT_OPEN || !w->path || g->files++ >= MOST_FILES || !file_place_of_path(&g->mounts, w->path, g->snap->arena, &place))
			return false;
		place.path = NULL; /* which the wait has */
		return set_place(t, place);
	}
	return false;
}

/* NULL: there are none for this call. Many threads are in the same one. */
static const struct call_facts *find_facts(struct gathering *g, const struct syscall_info *call)
{
	if (call == g->last_call)
		return g->last_facts;
	g->last_call = call;
	g->last_facts = NULL;
	for (size_t i = 0; !g->last_facts && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(call->name, calls[i].name) == 0)
			g->last_facts = &calls[i];
	return g->last_facts;
}

static bool gather_by_call(struct gathering *g, struct snap_thread *t)
{
	const struct syscall_info *call = call_of(g, t);
	const struct call_facts *facts = call ? find_facts(g, call) : NULL;

	if (facts) {
		facts->gather(g, t);
		return true;
	}
	if (t->state == 'D' && t->syscall.state == SYSCALL_NONE)
		return gather_mapped(g, t);
	if (!call || !may_wait_for_file(g, t))
		return false;
	if (!takes_descriptor(call))
		return gather_path(g, t);
	gather_file(g, t);
	return true;
}

/* The parent of a process that has ended, which its threads have not told yet. */
static bool gather_parent(struct gathering *g, struct snap_thread *t)
{
	struct task_stat stat;

	if (t->tid != g->snap->pid || !process_has_ended(g->process) || process_glance(t->tid, &stat) < 0)
		return false;
	set_other(g, t, stat.parent);
	return true;
}

static bool gather_thread(struct gathering *g, struct snap_thread *t)
{
	if (state_is_dead(t->state))
		return gather_parent(g, t);
	if (t->state == 't') {
		set_other(g, t, t->tracer);
		return true;
	}
	if (t->state == 'R') {
		if (t->facts.cpu < 0 && g->cpus++ < MOST_CPUS) /* which BPF tells */
			t->facts.cpu = task_cpu(g->process, t->tid);
		return false;
	}
	if (g->frozen && t->state != 'T') {
		t->facts.frozen = true;
		t->facts.place = g->frozen;
		return true;
	}
	return t->state != 'T' && gather_by_call(g, t);
}

/* All of its threads are frozen, or none: one of those that are not stopped tells whether it can be. */
static bool may_be_frozen(const struct snapshot *snap)
{
	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];

		if (t->state == 'S' || t->state == 'D')
			return t->state == 'D' || !t->kernel_text || is_in(t, "get_signal") || is_in(t, "do_freezer_trap");
	}
	return false;
}

static int gather_process(struct besides *b)
{
	struct gathering g = {.capture = b->capture, .process = &b->capture->target->process, .snap = b->snap, .can_compare = !b->capture->unstoppable};

	g.mounts.process = g.process;
	if (may_be_frozen(b->snap))
		g.frozen = freezer_find(g.process, b->snap->arena);
	for (size_t i = 0; i < b->snap->threads.len; i++)
		b->gathered[i] |= gather_thread(&g, &b->snap->threads.data[i]);
	vec_deinit(&g.children);
	vec_deinit(&g.faults);
	mount_list_deinit(&g.mounts);
	return g.failed ? -ENOMEM : 0;
}

int gather_thread_facts(struct besides *all, size_t n)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = gather_process(&all[i]);
	return rc;
}
