/* SPDX-License-Identifier: MIT */
#include "model/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"

struct snapshot *snapshot_create(pid_t pid, const struct arch *arch)
{
	struct snapshot *snap = calloc(1, sizeof(*snap));

	if (!snap)
		return NULL;
	snap->arena = arena_create();
	if (!snap->arena) {
		free(snap);
		return NULL;
	}
	snap->pid = pid;
	snap->arch = arch;
	return snap;
}

static int64_t add_ahead(int64_t at, int64_t ahead)
{
	int64_t sum;

	return !at || ahead == CLOCK_UNKNOWN || __builtin_add_overflow(at, ahead, &sum) ? 0 : sum;
}

int64_t snapshot_clock(const struct snapshot *snap, clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return snap->taken_at_ns;
	case CLOCK_MONOTONIC:
		return add_ahead(snap->taken_at_monotonic_ns, snap->monotonic_ahead_ns);
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		return add_ahead(snap->taken_at_monotonic_ns, snap->boottime_ahead_ns);
	default:
		return 0;
	}
}

void snapshot_destroy(struct snapshot *snap)
{
	if (!snap)
		return;
	for (size_t i = 0; i < snap->bulk.len; i++)
		munmap(snap->bulk.data[i].data, snap->bulk.data[i].size);
	vec_deinit(&snap->bulk);
	vec_deinit(&snap->outsiders);
	vec_deinit(&snap->threads);
	vec_deinit(&snap->maps);
	vec_deinit(&snap->images);
	vec_deinit(&snap->jit_images);
	vec_deinit(&snap->copies);
	vec_deinit(&snap->runtimes);
	vec_deinit(&snap->waits);
	notes_deinit(&snap->notes);
	arena_destroy(snap->arena);
	free(snap);
}

static bool copy_string(struct snapshot *snap, const char *from, const char **out)
{
	*out = from ? arena_intern(snap->arena, from) : NULL;
	return *out || !from;
}

struct snap_runtime *snapshot_add_runtime(struct snapshot *snap, const struct snap_runtime *runtime)
{
	struct snap_runtime copy = {.nfacts = runtime->nfacts};

	copy.facts = arena_alloc(snap->arena, runtime->nfacts * sizeof(*copy.facts) + 1);
	if (!copy.facts || !copy_string(snap, runtime->name, &copy.name) ||
	    !copy_string(snap, runtime->version, &copy.version) || !copy_string(snap, runtime->problem, &copy.problem))
		return NULL;
	if (copy.nfacts)
		memcpy(copy.facts, runtime->facts, copy.nfacts * sizeof(*copy.facts));
	return vec_push(&snap->runtimes, copy) ? &snap->runtimes.data[snap->runtimes.len - 1] : NULL;
}

struct snap_runtime *snapshot_find_runtime(const struct snapshot *snap, const char *name)
{
	for (size_t i = 0; i < snap->runtimes.len; i++)
		if (strcmp(snap->runtimes.data[i].name, name) == 0)
			return &snap->runtimes.data[i];
	return NULL;
}

/* 32-bit programs have nothing above 4 GiB, and others their stack at least. */
static bool is_32bit(const struct maps *maps)
{
	return maps->len && maps->data[maps->len - 1].end <= UINT64_C(1) << 32;
}

const struct arch *snapshot_arch_of(const struct snapshot *snap, const struct snap_thread *thread)
{
	if (!snap->arch->narrow)
		return snap->arch;
	return is_32bit(&snap->maps) || (thread && thread->status == THREAD_32BIT) ? snap->arch->narrow : snap->arch;
}

/* Bytes of [address, address + len) that the copy holds from `address` on. */
static size_t copy_size(const struct mem_copy *copy, uint64_t address, size_t len)
{
	uint64_t offset = address - copy->start;

	if (address < copy->start || offset >= copy->len)
		return 0;
	return len < copy->len - offset ? len : (size_t)(copy->len - offset);
}

size_t mem_copy_read(const struct mem_copy *copy, uint64_t address, void *buf, size_t len)
{
	len = copy_size(copy, address, len);
	if (len)
		memcpy(buf, copy->data + (address - copy->start), len);
	return len;
}

static ssize_t snapshot_mem_read(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct snapshot_mem *m = (struct snapshot_mem *)mem;
	size_t n = m->snap->copies.len, from = m->last < n ? m->last : 0;
	size_t got = m->thread ? mem_copy_read(&m->thread->stack, address, buf, len) : 0;

	if (!got && m->thread)
		got = mem_copy_read(&m->thread->interrupted, address, buf, len);

	for (size_t i = 0; !got && i < m->snap->images.len; i++)
		got = mem_copy_read(&m->snap->images.data[i], address, buf, len);
	for (size_t i = 0; got < len && i < n; i++) { /* they may overlap: the longest part counts */
		size_t at = from + i < n ? from + i : from + i - n;
		const struct snap_copy *copy = &m->snap->copies.data[at];
		size_t more = copy->tid && (!m->thread || copy->tid != m->thread->tid) ? 0 : copy_size(&copy->copy, address, len);

		if (more > got) {
			got = mem_copy_read(&copy->copy, address, buf, more);
			m->last = at;
		}
	}
	return got ? (ssize_t)got : -EFAULT;
}

void snapshot_mem_init(struct snapshot_mem *m, const struct snapshot *snap, const struct snap_thread *thread)
{
	*m = (struct snapshot_mem){.mem = {.read = snapshot_mem_read}, .snap = snap, .thread = thread};
}
