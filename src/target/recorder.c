/* SPDX-License-Identifier: MIT */
#include "target/recorder.h"

#include <errno.h>
#include <string.h>

static size_t find_in_thread(struct thread_recorder *r, uint64_t address, uint8_t *buf, size_t len)
{
	size_t got = r->stack ? mem_copy_read(r->stack, address, buf, len) : 0;

	if (!got && r->interrupted)
		got = mem_copy_read(r->interrupted, address, buf, len);
	for (size_t i = r->room->len; !got && i > r->first && r->work; i--, r->work--) /* the latest is the likeliest */
		got = mem_copy_read(&r->room->copies[i - 1].copy, address, buf, len);
	return got;
}

/* How many blocks there is room for. */
static uint64_t blocks_left(const struct thread_recorder *r)
{
	uint64_t own = RECORDER_THREAD_COPIES - (r->room->used - r->first_byte) / RECORDER_THREAD_BLOCK;
	uint64_t all = (r->room->bytes.size - r->room->used) / RECORDER_THREAD_BLOCK;

	return r->room->len == r->room->cap ? 0 : own < all ? own : all;
}

/* Reads the blocks of `len` bytes at an address; false: the first cannot be read, or there is no room for it. */
static bool fetch_blocks_of_thread(struct thread_recorder *r, uint64_t address, size_t len)
{
	struct recorder_room *room = r->room;
	uint64_t start = address & ~(uint64_t)(RECORDER_THREAD_BLOCK - 1), left = blocks_left(r);
	uint64_t wanted = (address - start + len + RECORDER_THREAD_BLOCK - 1) / RECORDER_THREAD_BLOCK;
	struct memory_job job = {.address = start, .dst = room->bytes.data + room->used};

	job.len = (wanted < left ? wanted : left) * RECORDER_THREAD_BLOCK;
	if (!job.len)
		return false;
	memory_copy(r->vm, &job, 1);
	if (job.done <= address - start)
		return false;
	room->used += (job.done + RECORDER_THREAD_BLOCK - 1) / RECORDER_THREAD_BLOCK * RECORDER_THREAD_BLOCK;
	room->copies[room->len++] = (struct snap_copy){
		.tid = r->tid,
		.copy = {.start = start, .len = job.done, .region_end = start + job.done, .data = job.dst},
	};
	return true;
}

static ssize_t read_thread(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct thread_recorder *r = (struct thread_recorder *)mem;
	size_t done = 0;

	while (done < len) {
		size_t got = r->work ? find_in_thread(r, address + done, (uint8_t *)buf + done, len - done) : 0;

		r->work -= r->work > 0;
		if (!r->work || (!got && !fetch_blocks_of_thread(r, address + done, len - done)))
			break;
		done += got;
	}
	return done ? (ssize_t)done : -EFAULT;
}

void thread_recorder_init(struct thread_recorder *recorder, struct memory *vm, struct recorder_room *room, pid_t tid,
			  const struct mem_copy *stack, const struct mem_copy *interrupted)
{
	*recorder = (struct thread_recorder){
		.mem = {.read = read_thread},
		.vm = vm,
		.room = room,
		.first = room->len,
		.first_byte = room->used,
		.work = RECORDER_THREAD_WORK,
		.tid = tid,
		.stack = stack,
		.interrupted = interrupted,
	};
}

static uint64_t block_of(uint64_t address)
{
	return address / RECORDER_PROCESS_BLOCK;
}

static struct arena *arena_of(const struct process_recorder *r)
{
	return r->passing ? r->own : r->snap->arena;
}

/* A copy of several blocks is found by each of them. Others' copies, which are no whole blocks, give way. */
static bool add_blocks(struct process_recorder *r, const struct mem_copy *copy)
{
	bool whole = copy->start % RECORDER_PROCESS_BLOCK == 0;
	struct mem_copy *own;

	if (!copy->len || copy->len > RECORDER_PROCESS_BYTES || copy->len > UINT64_MAX - copy->start)
		return true;
	own = arena_alloc(arena_of(r), sizeof(*own));
	if (!own)
		return false;
	*own = *copy;
	for (uint64_t block = block_of(copy->start); block <= block_of(copy->start + copy->len - 1); block++) {
		bool created;
		uint64_t *slot = u64map_put(&r->blocks, block, &created);

		if (!slot)
			return false;
		if (created || whole)
			*slot = (uintptr_t)own;
	}
	return true;
}

/* From the block of an address on, as many as `len` bytes need. */
static bool fetch_blocks(struct process_recorder *r, uint64_t address, size_t len)
{
	uint64_t start = block_of(address) * RECORDER_PROCESS_BLOCK, end;
	struct snap_copy copy = {.copy.start = start};
	struct memory_job job = {.address = start};

	if (!r->vm || len > r->left || len > UINT64_MAX - address - RECORDER_PROCESS_BLOCK)
		return false;
	end = (block_of(address + len - 1) + 1) * RECORDER_PROCESS_BLOCK;
	job.len = end - start;
	if (r->passing && !r->own)
		r->own = arena_create();
	job.dst = arena_of(r) ? arena_alloc(arena_of(r), job.len) : NULL;
	if (!job.dst)
		return false;
	r->left -= job.len < r->left ? job.len : r->left;
	memory_copy(r->vm, &job, 1);
	if (job.done <= address - start)
		return false;
	copy.copy.len = job.done;
	copy.copy.region_end = start + job.done;
	copy.copy.data = job.dst;
	return (r->passing || vec_push(&r->snap->copies, copy)) && add_blocks(r, &copy.copy);
}

static size_t find_in_process(const struct process_recorder *r, uint64_t address, uint8_t *buf, size_t len)
{
	uint64_t *slot = u64map_find(&r->blocks, block_of(address));

	return slot ? mem_copy_read((const struct mem_copy *)(uintptr_t)*slot, address, buf, len) : 0;
}

static ssize_t read_process(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct process_recorder *r = (struct process_recorder *)mem;
	size_t done = 0;

	if (!r->work)
		return -EFAULT;
	r->work--;
	while (done < len) {
		size_t got = find_in_process(r, address + done, (uint8_t *)buf + done, len - done);

		if (!got && !fetch_blocks(r, address + done, len - done))
			break;
		done += got;
		/* A block that is known but ends before the address would be read for ever. */
		if (!got && !find_in_process(r, address + done, (uint8_t *)buf + done, 1))
			break;
	}
	return done ? (ssize_t)done : -EFAULT;
}

bool process_recorder_init(struct process_recorder *recorder, struct memory *vm, struct snapshot *snap)
{
	*recorder = (struct process_recorder){
		.mem = {.read = read_process},
		.vm = vm,
		.snap = snap,
		.left = RECORDER_PROCESS_BYTES,
		.work = RECORDER_PROCESS_WORK,
	};
	for (size_t i = 0; i < snap->copies.len; i++)
		if (!snap->copies.data[i].tid && !add_blocks(recorder, &snap->copies.data[i].copy)) {
			process_recorder_deinit(recorder);
			return false;
		}
	return true;
}

bool process_recorder_is_full(const struct process_recorder *recorder)
{
	return !recorder->work || recorder->left < RECORDER_PROCESS_BLOCK;
}

void process_recorder_deinit(struct process_recorder *recorder)
{
	u64map_deinit(&recorder->blocks);
	arena_destroy(recorder->own);
	recorder->own = NULL;
}
