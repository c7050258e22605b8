/* SPDX-License-Identifier: MIT */
#include "offcpu/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"

struct shared_stack {
	struct wait_stack stack;
	struct shared_stack *next; /* with the same low half of the id */
};

/* What makes two waits the same. No padding: it is hashed as bytes. */
struct row_key {
	struct offcpu_stack_id stack;
	struct offcpu_stack_id waker_stack;
	uint32_t tgid;
	uint32_t tid;
	uint32_t state;
	uint32_t waker_tid;
};

struct keyed_row {
	struct wait_row row;
	struct row_key key;
	struct keyed_row *next; /* with the same hash */
};

struct waits {
	struct tables *tables;
	struct waits_options options;
	struct arena *arena; /* of names and frames */
	struct u64map stacks;
	VEC(struct shared_stack *) all_stacks;
	struct u64map by_key;
	VEC(struct keyed_row *) rows;
	struct u64map by_thread; /* tgid and tid to index + 1 */
	VEC(struct offcpu_thread) threads;
	uint64_t lost;
	uint64_t seen;
};

DEFINE_CLEANUP(waits, struct waits *, waits_destroy)

struct waits *waits_create(struct tables *tables, const struct waits_options *options)
{
	_cleanup_(cleanup_waits) struct waits *waits = calloc(1, sizeof(*waits));

	if (!waits)
		return NULL;
	waits->tables = tables;
	waits->options = *options;
	waits->arena = arena_create();
	return waits->arena ? steal_ptr(waits) : NULL;
}

void waits_destroy(struct waits *waits)
{
	if (!waits)
		return;
	for (size_t i = 0; i < waits->all_stacks.len; i++) {
		raw_stack_deinit(&waits->all_stacks.data[i]->stack.user);
		free(waits->all_stacks.data[i]);
	}
	for (size_t i = 0; i < waits->rows.len; i++)
		free(waits->rows.data[i]);
	vec_deinit(&waits->all_stacks);
	vec_deinit(&waits->rows);
	vec_deinit(&waits->threads);
	u64map_deinit(&waits->stacks);
	u64map_deinit(&waits->by_key);
	u64map_deinit(&waits->by_thread);
	arena_destroy(waits->arena);
	free(waits);
}

static struct wait_stack *find_stack(const struct waits *waits, struct offcpu_stack_id id)
{
	const uint64_t *slot = u64map_find(&waits->stacks, id.low);
	struct shared_stack *shared = slot ? (struct shared_stack *)(uintptr_t)*slot : NULL;

	while (shared && shared->stack.id.high != id.high)
		shared = shared->next;
	return shared ? &shared->stack : NULL;
}

static bool fill_stack(struct waits *waits, const struct offcpu_stack *head, const uint64_t *frames,
		       struct wait_stack *out)
{
	out->id = head->id;
	out->kernel_error = head->kernel_error;
	out->user_end = head->user_end;
	out->nkernel = head->nkernel;
	out->kernel = arena_alloc(waits->arena, head->nkernel * sizeof(*out->kernel) + 1);
	out->addresses = arena_alloc(waits->arena, head->nuser * sizeof(*out->addresses) + 1);
	if (!out->kernel || !out->addresses)
		return false;
	memcpy(out->kernel, frames, head->nkernel * sizeof(*out->kernel));
	frames += head->nkernel;
	for (uint32_t i = 0; i < head->nuser; i++) {
		uint64_t address = frames[i] & ~OFFCPU_BY_FRAME_POINTER;
		bool innermost = i == 0;
		/* A return address may be the first of another file: it is the call that counts. */
		uint64_t place = tables_place(waits->tables, head->set, address - !innermost);
		struct raw_frame frame = {.pc = place ? place + !innermost : address};

		out->addresses[i] = address;
		frame.flags = innermost ? 0 : FRAME_RETURN_ADDRESS;
		if (frames[i] & OFFCPU_BY_FRAME_POINTER)
			frame.flags |= FRAME_BY_FRAME_POINTER;
		if (!vec_push(&out->user, frame))
			return false;
	}
	return true;
}

void waits_add_stack(struct waits *waits, const void *record, size_t len)
{
	const struct offcpu_stack *head = record;
	struct shared_stack *shared;
	uint64_t *slot;
	bool created;

	if (len < sizeof(*head) || head->nkernel > OFFCPU_KERNEL_FRAMES || head->nuser > OFFCPU_USER_FRAMES ||
	    len < sizeof(*head) + (head->nkernel + head->nuser) * sizeof(uint64_t)) {
		waits->lost++;
		return;
	}
	if (find_stack(waits, head->id))
		return;
	slot = u64map_put(&waits->stacks, head->id.low, &created);
	shared = slot ? calloc(1, sizeof(*shared)) : NULL;
	if (!shared || !vec_push(&waits->all_stacks, shared)) {
		free(shared);
		waits->lost++;
		return;
	}
	shared->next = (struct shared_stack *)(uintptr_t)*slot;
	*slot = (uintptr_t)shared;
	if (!fill_stack(waits, head, (const uint64_t *)(head + 1), &shared->stack))
		waits->lost++;
}

static struct keyed_row *find_row(struct waits *waits, const struct row_key *key, bool *created)
{
	uint64_t *slot = u64map_put(&waits->by_key, hash_bytes(HASH_SEED, key, sizeof(*key)), created);
	struct keyed_row *row;

	*created = false;
	if (!slot)
		return NULL;
	for (row = (struct keyed_row *)(uintptr_t)*slot; row; row = row->next)
		if (memcmp(&row->key, key, sizeof(*key)) == 0)
			return row;
	if (waits->rows.len >= waits->options.max_rows)
		return NULL;
	row = calloc(1, sizeof(*row));
	if (!row || !vec_push(&waits->rows, row)) {
		free(row);
		return NULL;
	}
	row->key = *key;
	row->next = (struct keyed_row *)(uintptr_t)*slot;
	*slot = (uintptr_t)row;
	*created = true;
	return row;
}

static const char *intern_comm(struct waits *waits, const char comm[static OFFCPU_COMM])
{
	return arena_intern_n(waits->arena, comm, strnlen(comm, OFFCPU_COMM));
}

static void add_to_thread(struct waits *waits, const struct offcpu_wait *wait)
{
	bool created;
	uint64_t *slot = u64map_put(&waits->by_thread, (uint64_t)wait->tgid << 32 | wait->tid, &created);
	uint64_t blocked = wait->duration_ns - wait->runnable_ns;
	struct offcpu_thread *thread;

	if (!slot)
		return;
	if (!*slot) {
		if (!vec_push(&waits->threads, (struct offcpu_thread){.pid = (pid_t)wait->tgid, .tid = (pid_t)wait->tid}))
			return;
		*slot = waits->threads.len;
	}
	thread = &waits->threads.data[*slot - 1];
	thread->name = intern_comm(waits, wait->comm); /* threads take their names late: the last one counts */
	offcpu_sum_add(&thread->sum, wait->duration_ns, wait->runnable_ns);
	thread->runnable_ns += wait->runnable_ns;
	if (wait->state == OFFCPU_UNINTERRUPTIBLE)
		thread->uninterruptible_ns += blocked;
	else
		thread->sleeping_ns += blocked;
}

const struct wait_row *waits_add_wait(struct waits *waits, const void *record, size_t len)
{
	const struct offcpu_wait *wait = record;
	struct row_key key = {0};
	struct keyed_row *row;
	bool created;

	if (len < sizeof(*wait) || wait->runnable_ns > wait->duration_ns) {
		waits->lost++;
		return NULL;
	}
	waits->seen++;
	key.stack = wait->stack;
	key.waker_stack = wait->waker_stack;
	key.tgid = wait->tgid;
	key.tid = waits->options.by_thread ? wait->tid : 0;
	key.state = wait->state;
	key.waker_tid = wait->waker_tid;
	add_to_thread(waits, wait);
	row = find_row(waits, &key, &created);
	if (!row) {
		waits->lost++;
		return NULL;
	}
	if (created)
		row->row = (struct wait_row){
			.tgid = (pid_t)wait->tgid,
			.tid = (pid_t)key.tid,
			.state = (char)wait->state,
			.waker_tgid = (pid_t)wait->waker_tgid,
			.waker_tid = (pid_t)wait->waker_tid,
			.waker_name = wait->waker_tid ? intern_comm(waits, wait->waker_comm) : NULL,
		};
	if (!row->row.stack) /* it was lost, but may have been sent again */
		row->row.stack = find_stack(waits, wait->stack);
	if (!row->row.waker_stack && wait->waker_tid)
		row->row.waker_stack = find_stack(waits, wait->waker_stack);
	row->row.name = intern_comm(waits, wait->comm);
	offcpu_sum_add(&row->row.sum, wait->duration_ns, wait->runnable_ns);
	return &row->row;
}

size_t waits_nrows(const struct waits *waits)
{
	return waits->rows.len;
}

const struct wait_row *waits_row(const struct waits *waits, size_t index)
{
	return &waits->rows.data[index]->row;
}

size_t waits_nthreads(const struct waits *waits)
{
	return waits->threads.len;
}

const struct offcpu_thread *waits_thread(const struct waits *waits, size_t index)
{
	return &waits->threads.data[index];
}

uint64_t waits_lost(const struct waits *waits)
{
	return waits->lost;
}

uint64_t waits_seen(const struct waits *waits)
{
	return waits->seen;
}
