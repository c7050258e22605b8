/* SPDX-License-Identifier: MIT */
#include "wait/waits.h"

#include <linux/futex.h>
#include <string.h>

#include "wait/locks.h"

static bool is_futex_wait(uint32_t op)
{
	op &= (uint32_t)FUTEX_CMD_MASK;
	return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET || op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2;
}

static bool read_futex_wait(const struct trace *trace, const struct trace_thread *t, struct futex_wait *out)
{
	const struct snap_syscall *syscall = &t->thread->syscall;
	const struct arch *arch = snapshot_arch_of(t->snap, t->thread);
	const struct syscall_info *call = syscall->state == SYSCALL_IN ? arch_syscall(arch, syscall->nr) : NULL;
	struct snapshot_mem mem;
	ssize_t got;

	if (!call || strcmp(call->name, "futex") != 0 || !is_futex_wait((uint32_t)syscall->args[1]))
		return false;
	*out = (struct futex_wait){
		.trace = trace,
		.thread = t,
		.address = syscall->args[0],
		.op = (uint32_t)syscall->args[1],
		.value = (uint32_t)syscall->args[2],
	};
	snapshot_mem_init(&mem, t->snap, t->thread);
	got = mem.mem.read(&mem.mem, out->address, out->words, sizeof(out->words));
	out->nwords = got > 0 ? (unsigned)got / sizeof(out->words[0]) : 0;
	return true;
}

/* Where it is, in terms of a file whose variable it is. */
static void find_place(const struct snapshot *snap, struct wait *w)
{
	const uint64_t address = w->address ? w->address : w->word;
	const struct map_entry *map = maps_find(&snap->maps, address);

	while (map && map > snap->maps.data && !map->inode && !map->path[0] && map[-1].end == map->start)
		map--; /* variables without a value in the file follow those that have one */
	if (!map || !map->inode)
		return;
	w->path = map->path;
	w->offset = address - map->start + map->offset;
}

/*
 * What a thread waits for was read while it slept. An owner that did not run then had it all the while; one that was read in a window may
 * have let go of it between the two. A thread that has been woken does not wait any more.
 */
static bool is_certain(const struct snap_thread *t, const struct snap_thread *owner)
{
	if (t->woken || t->still == STILL_NEVER || owner->still == STILL_NEVER || owner->read_in > t->read_in || owner->still_in < t->read_in)
		return false;
	return t->still == STILL_IN_WINDOW || owner->still == STILL_THROUGHOUT;
}

/* The owner as threads are numbered here, and whether it is sure. */
static void find_owner(const struct trace_thread *t, struct wait *w)
{
	const struct snapshot *snap = t->snap;

	for (size_t i = 0; w->holder == HOLDER_THREAD && i < snap->threads.len; i++) {
		const struct snap_thread *owner = &snap->threads.data[i];

		if ((owner->inner_tid ? owner->inner_tid : owner->tid) != w->owner)
			continue;
		w->owner = owner->tid;
		w->owner_pid = snap->pid;
		w->certain = is_certain(t->thread, owner);
		return;
	}
}

static void find_wait(const struct trace *trace, struct trace_thread *t)
{
	struct futex_wait futex;

	t->wait = (struct wait){0};
	if (t->thread->state == 'R' || t->thread->status != THREAD_CAPTURED || !read_futex_wait(trace, t, &futex))
		return;
	t->wait.timed = t->thread->syscall.args[3] != 0;
	lock_of_futex(&futex, &t->wait);
	find_place(t->snap, &t->wait);
	find_owner(t, &t->wait);
}

void waits_find(struct trace *trace)
{
	for (size_t i = 0; i < trace->threads.len; i++)
		find_wait(trace, &trace->threads.data[i]);
}
