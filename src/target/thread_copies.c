/* SPDX-License-Identifier: MIT */
#include "target/thread_copies.h"

#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"

enum { MAX_WORK = 1 << 22 };

void thread_copies_deinit(struct thread_copies *copies)
{
	vec_deinit(copies);
}

static int compare(const void *a, const void *b)
{
	const struct thread_copy *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* What is no thread's own is added while they are read. */
static bool has_more(const struct thread_copies *copies, const struct snapshot *snap)
{
	for (size_t i = copies->of; i < snap->copies.len; i++)
		if (snap->copies.data[i].tid)
			return true;
	return copies->of > snap->copies.len;
}

static bool sort(struct thread_copies *copies, const struct snapshot *snap)
{
	copies->len = 0;
	if (!vec_reserve(copies, snap->copies.len))
		return false;
	for (size_t i = 0; i < snap->copies.len; i++)
		if (snap->copies.data[i].tid)
			copies->data[copies->len++] = (struct thread_copy){.tid = snap->copies.data[i].tid, .index = (uint32_t)i};
	if (copies->len)
		qsort(copies->data, copies->len, sizeof(*copies->data), compare);
	copies->of = snap->copies.len;
	return true;
}

static size_t read_part(struct thread_copies_mem *m, uint64_t address, void *buf, size_t len)
{
	size_t got = mem_copy_read(&m->thread->stack, address, buf, len);

	if (!got)
		got = mem_copy_read(&m->thread->interrupted, address, buf, len);
	for (size_t i = 0; !got && i < m->n && m->work; i++, m->work--)
		got = mem_copy_read(&m->snap->copies.data[m->copies[i].index].copy, address, buf, len);
	return got;
}

static ssize_t read_copies(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct thread_copies_mem *m = (struct thread_copies_mem *)mem;
	size_t done = 0, got = 1;

	for (; got && done < len; done += got)
		got = read_part(m, address + done, (uint8_t *)buf + done, len - done);
	return (ssize_t)done;
}

bool thread_copies_mem_init(struct thread_copies_mem *mem, struct thread_copies *copies, const struct snapshot *snap,
			    const struct snap_thread *thread)
{
	size_t first;

	if (has_more(copies, snap) && !sort(copies, snap))
		return false;
	copies->of = snap->copies.len;
	first = sorted_upto(copies->data, copies->len, .tid, thread->tid - 1);
	*mem = (struct thread_copies_mem){
		.mem = {.read = read_copies},
		.snap = snap,
		.thread = thread,
		.work = MAX_WORK,
		.copies = copies->len ? copies->data + first : NULL,
		.n = sorted_upto(copies->data, copies->len, .tid, thread->tid) - first,
	};
	return true;
}
