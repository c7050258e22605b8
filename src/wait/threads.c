/* SPDX-License-Identifier: MIT */
#include "wait/threads.h"

uint32_t wait_number_of(const struct snapshot *snap, const struct snap_thread *thread)
{
	return (uint32_t)(snap->inner_pid ? thread->inner_tid : thread->tid);
}

static const uint64_t SEVERAL = UINT64_MAX;

/* What several have tells nothing: with musl the kernel clears one word for all of them. 0 is none. */
static bool put(struct u64map *map, uint64_t key, size_t index)
{
	bool created;
	uint64_t *slot = key ? u64map_put(map, key, &created) : NULL;

	if (slot)
		*slot = created ? index : SEVERAL;
	return slot || !key;
}

bool wait_threads_init(struct wait_threads *threads, const struct snapshot *snap)
{
	*threads = (struct wait_threads){.snap = snap, .last_look = snap->capture.last_look};
	if (!u64map_reserve(&threads->by_tid, snap->threads.len) || !u64map_reserve(&threads->by_address, snap->threads.len))
		return false;
	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];

		if (!put(&threads->by_tid, (uint64_t)t->tid, i) || !put(&threads->by_address, t->tid_address, i) ||
		    (snap->inner_pid && !put(&threads->by_number, wait_number_of(snap, t), i)))
			return false;
		if (t->still != STILL_NEVER && t->still_in > threads->last_look)
			threads->last_look = t->still_in;
	}
	return true;
}

void wait_threads_deinit(struct wait_threads *threads)
{
	u64map_deinit(&threads->by_number);
	u64map_deinit(&threads->by_tid);
	u64map_deinit(&threads->by_address);
}

static const struct snap_thread *find(const struct wait_threads *threads, const struct u64map *map, uint64_t key)
{
	const uint64_t *slot = key ? u64map_find(map, key) : NULL;

	return slot && *slot != SEVERAL ? &threads->snap->threads.data[*slot] : NULL;
}

const struct snap_thread *wait_thread_numbered(const struct wait_threads *threads, uint32_t number)
{
	return find(threads, threads->snap->inner_pid ? &threads->by_number : &threads->by_tid, number);
}

const struct snap_thread *wait_thread_with_tid(const struct wait_threads *threads, pid_t tid)
{
	return find(threads, &threads->by_tid, (uint64_t)tid);
}

const struct snap_thread *wait_thread_at(const struct wait_threads *threads, uint64_t tid_address)
{
	return find(threads, &threads->by_address, tid_address);
}
