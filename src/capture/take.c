/* SPDX-License-Identifier: MIT */
#include "capture/take.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/sorted.h"
#include "proc/task.h"

int take_out_of_memory(struct take *take)
{
	return err_set(take->err, ENOMEM, "out of memory");
}

struct bulk *take_add_bulk(struct snapshot *snap, size_t size, size_t ready)
{
	struct bulk b = {.size = size};

	b.data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (b.data == MAP_FAILED)
		return NULL;
	for (size_t at = 0; at < ready && at < size; at += 4096)
		b.data[at] = 0;
	if (!vec_push(&snap->bulk, b)) {
		munmap(b.data, size);
		return NULL;
	}
	return &snap->bulk.data[snap->bulk.len - 1];
}

void take_set_status(struct snapshot *snap, struct snap_thread *t, enum thread_status status, const char *why)
{
	t->status = status;
	t->why = arena_intern(snap->arena, why);
}

void take_set_unanswered(struct snapshot *snap, struct snap_thread *t)
{
	const struct map_entry *map = maps_find(&snap->maps, t->stack.start);
	const char *path = map && map->path[0] ? map->path : "memory";

	t->status = THREAD_UNREADABLE;
	t->why = arena_printf(snap->arena,
			      "its stack is in %s, which somebody else has to deliver (a file system, userfaultfd) and did not; "
			      "no thread is held for that",
			      path);
}

int take_add_thread(struct take *take, pid_t tid, size_t *index)
{
	struct snap_thread fresh = {.tid = tid, .off_cpu_ns = -1, .cpu_ns = -1, .facts = thread_facts_none};
	bool created;
	uint64_t *slot = u64map_put(&take->index, (uint64_t)tid, &created);

	if (!slot || !vec_push(&take->snap->threads, fresh) || !vec_push(&take->work, WORK_TAKE) ||
	    !vec_push(&take->unread, false))
		return take_out_of_memory(take);
	*slot = take->snap->threads.len - 1;
	*index = (size_t)*slot;
	return 0;
}

bool take_wants(const struct capture *c, pid_t tid)
{
	if (!c->options.tids)
		return true;
	for (size_t i = 0; i < c->options.ntids; i++)
		if (c->options.tids[i] == tid)
			return true;
	return false;
}

static int index_seen(struct capture *c, struct err *err)
{
	u64map_deinit(&c->seen_index);
	for (size_t i = 0; i < c->seen.len; i++) {
		bool created;
		uint64_t *slot = u64map_put(&c->seen_index, (uint64_t)c->seen.data[i].tid, &created);

		if (!slot)
			return err_set(err, ENOMEM, "out of memory");
		*slot = i;
	}
	return 0;
}

static int observe(struct capture *c, const struct observe_request *request, struct err *err)
{
	int rc = c->observer->observe(c->observer, request, err, &c->seen);

	return rc < 0 ? rc : index_seen(c, err);
}

/* The ladder, in the middle of things: what was loaded may still fail when it is used. */
static int fall_back(struct take *take, const struct observe_request *request, int rc)
{
	struct capture *c = take->capture;
	struct observer *proc;

	if (rc == -ESRCH || rc == -ENOMEM || c->options.source != SOURCE_AUTO || c->observer_note[0] ||
	    observer_proc_create(&c->target->process, NULL, &proc) < 0)
		return rc;
	snprintf(c->observer_note, sizeof(c->observer_note), "threads are read through /proc, which shows only pc and sp: %s",
		 take->err ? take->err->msg : "the BPF task iterator failed");
	c->observer->destroy(c->observer);
	c->observer = proc;
	if (c->options.stop != STOP_ALL) { /* which does not depend on it */
		notes_add(&take->snap->notes, "%s", c->observer_note);
		take->snap->capture.method = proc->name;
	}
	take->generation = 0; /* it counts otherwise */
	return observe(c, request, take->err);
}

static int compare_sps(const void *a, const void *b)
{
	uint64_t x = ((const struct stack_pointer *)a)->sp, y = ((const struct stack_pointer *)b)->sp;

	return (x > y) - (x < y);
}

static int collect_sps(struct take *take)
{
	const struct observations *seen = &take->capture->seen;
	unsigned sp = take->snap->arch->user_sp;

	take->sps.len = 0;
	for (size_t i = 0; i < seen->len; i++) {
		struct stack_pointer known = {.sp = seen->data[i].regs.v[sp], .tid = seen->data[i].tid};

		if (seen->data[i].regs.valid >> sp & 1 && !vec_push(&take->sps, known))
			return take_out_of_memory(take);
	}
	if (take->sps.len)
		qsort(take->sps.data, take->sps.len, sizeof(*take->sps.data), compare_sps);
	return 0;
}

/* Observers know the processor's registers only. */
static void narrow_observed(struct take *take)
{
	struct observations *seen = &take->capture->seen;
	const struct arch *arch = take->snap->arch;

	for (size_t i = 0; arch != arch_host() && i < seen->len; i++) {
		struct user_regs regs = seen->data[i].regs;

		arch_narrow_registers(arch, arch_host(), &regs, &seen->data[i].regs);
	}
}

int take_choose_arch(struct take *take)
{
	const struct arch *arch = snapshot_arch_of(take->snap, NULL);

	if (arch == take->snap->arch)
		return 0;
	take->snap->arch = arch;
	narrow_observed(take);
	return collect_sps(take);
}

int take_observe(struct take *take, pid_t only_tid, bool counters_only)
{
	struct capture *c = take->capture;
	struct observe_request request = {
		.only_tid = only_tid,
		.counters_only = counters_only,
		.kernel_stacks = c->options.kernel_stacks && !counters_only,
		.arena = take->snap->arena,
	};
	uint64_t start = monotonic_ns();
	int rc = observe(c, &request, take->err);

	take->passes += !counters_only;
	if (!only_tid && !counters_only)
		take->pass_ns = monotonic_ns() - start;
	if (rc < 0)
		rc = fall_back(take, &request, rc);
	if (rc < 0)
		return rc;
	if (!take->generation)
		take->generation = c->seen.generation;
	if (c->seen.generation && c->seen.generation != take->generation)
		return -EAGAIN;
	narrow_observed(take);
	return only_tid || counters_only ? 0 : collect_sps(take);
}

int take_look(struct capture *c)
{
	return observe(c, &(struct observe_request){.counters_only = true}, NULL);
}

const struct observation *take_find_observed(const struct capture *c, pid_t tid)
{
	uint64_t *slot = u64map_find(&c->seen_index, (uint64_t)tid);

	return slot ? &c->seen.data[*slot] : NULL;
}

/*
 * The count of runs rises when a thread gets a CPU; but not if it was preempted when it had already decided to sleep, and goes on
 * from there. The counters of context switches rise when it leaves the CPU: together with its being off-CPU now they prove that it
 * had none since. /proc does not tell that, only that it is runnable: there the count has to do.
 */
bool take_unmoved(const struct observation *o, const struct snap_thread *t)
{
	if (state_is_dead(o->state))
		return false;
	if (o->nvcsw != t->nvcsw || o->nivcsw != t->nivcsw || o->on_cpu)
		return false;
	return o->has_runs && t->has_runs ? o->runs == t->runs : !o->running;
}

bool take_has_sp(const struct take *take, const struct snap_thread *t)
{
	return t->regs.valid >> take->snap->arch->user_sp & 1;
}

int take_refresh_maps(struct take *take)
{
	take->maps_fresh = true;
	target_forget_files(take->capture->target); /* they are by position in the map */
	return process_maps(&take->capture->target->process, take->snap->arena, take->err, &take->snap->maps);
}

static const struct map_entry *find_region(struct take *take, uint64_t sp)
{
	const struct map_entry *map = maps_find(&take->snap->maps, sp);

	/* A thread created since the map was read has a stack that is not in it. */
	if (!map && !take->maps_fresh && take_refresh_maps(take) == 0)
		map = maps_find(&take->snap->maps, sp);
	return map;
}

/* The lowest stack pointer above sp that another thread had, or UINT64_MAX. */
static uint64_t next_sp(const struct take *take, pid_t tid, uint64_t sp)
{
	size_t next = sorted_upto(take->sps.data, take->sps.len, .sp, sp);

	while (next < take->sps.len && take->sps.data[next].tid == tid)
		next++; /* where it was itself in that pass */
	return next < take->sps.len ? take->sps.data[next].sp : UINT64_MAX;
}

static struct mem_copy extent_in(const struct take *take, const struct map_entry *map, const struct snap_thread *t, uint64_t sp)
{
	struct mem_copy extent = {.start = sp};
	uint64_t next = next_sp(take, t->tid, sp);

	if (!map)
		return extent;
	extent.region_end = next < map->end ? next : map->end;
	if (t->tid_address > sp && t->tid_address < extent.region_end)
		extent.region_end = t->tid_address;
	extent.len = extent.region_end - sp;
	if (extent.len > take->capture->options.stack_size)
		extent.len = take->capture->options.stack_size;
	return extent;
}

struct mem_copy take_known_extent(const struct take *take, const struct snap_thread *t, uint64_t sp)
{
	return extent_in(take, maps_find(&take->snap->maps, sp), t, sp);
}

struct mem_copy take_stack_extent(struct take *take, const struct snap_thread *t, uint64_t sp)
{
	return extent_in(take, find_region(take, sp), t, sp);
}
