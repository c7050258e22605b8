/* SPDX-License-Identifier: MIT */
#include "capture/take.h"

#include <errno.h>
#include <sys/mman.h>

int take_out_of_memory(struct take *take)
{
	return err_set(take->err, ENOMEM, "out of memory");
}

/* Memory for `size` bytes of copies; the first `ready` of them are given pages now. */
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

int take_add_thread(struct take *take, pid_t tid, size_t *index)
{
	struct snap_thread fresh = {.tid = tid, .off_cpu_ns = -1};
	bool created;
	uint64_t *slot = u64map_put(&take->index, (uint64_t)tid, &created);

	if (!slot || !vec_push(&take->snap->threads, fresh) || !vec_push(&take->work, WORK_TAKE))
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

int take_observe(struct capture *c, struct snapshot *snap, pid_t only_tid, bool counters_only, struct err *err)
{
	struct observe_request request = {
		.only_tid = only_tid,
		.counters_only = counters_only,
		.kernel_stacks = c->options.kernel_stacks && !counters_only,
		.arena = snap ? snap->arena : NULL,
	};

	return c->source->observe(c->source, &request, err, &c->seen);
}

const struct observed *take_find_observed(const struct capture *c, pid_t tid)
{
	for (size_t i = 0; i < c->seen.len; i++)
		if (c->seen.data[i].tid == tid)
			return &c->seen.data[i];
	return NULL;
}

bool take_same_counters(const struct observed *o, const struct snap_thread *t)
{
	return !o->running && o->nvcsw == t->nvcsw && o->nivcsw == t->nivcsw && !state_is_dead(o->state);
}

bool take_has_sp(const struct take *take, const struct snap_thread *t)
{
	return t->regs.valid >> take->snap->arch->user_sp & 1;
}

const struct map_entry *take_stack_region(struct take *take, uint64_t sp)
{
	const struct map_entry *map = maps_find(&take->snap->maps, sp);

	/* A thread created since the map was read has a stack that is not in it. */
	if (!map && !take->maps_fresh) {
		take->maps_fresh = true;
		if (process_maps(&take->capture->process, take->snap->arena, NULL, &take->snap->maps) == 0)
			map = maps_find(&take->snap->maps, sp);
	}
	return map;
}
