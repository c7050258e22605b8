/* SPDX-License-Identifier: MIT */
#include "runtime/python/locks.h"

#include <string.h>

#include "runtime/python/types.h"
#include "target/pointers.h"

enum {
	LOCK_WORD = 16, /* in a lock object: a pointer to a semaphore, or a byte */
	BESIDE = 8,	/* before the futex: the address of that byte */
	LOCK_REFERENCES = 24, /* in a lock object up to 3.12: weak references to it */
	END_SELF = 25,	/* before a byte that tells of a thread's end: what pthread_self() is, twice, and whether that is known */
	END_HANDLE = 17,
	END_KNOWN = 9,
	MAX_COUNT = 1 << 30,
};

size_t python_lock_candidates(const struct snapshot *snap, const struct snap_thread *t, uint64_t out[PYTHON_LOCK_CANDIDATES])
{
	/* The functions that acquire a lock have small frames. */
	static const struct pointed objects = {.alignment = 16, .bytes = PYTHON_LOCK_BYTES, .scanned = 1024, .anonymous = true};

	return pointers_of(snap, t, &objects, out, PYTHON_LOCK_CANDIDATES);
}

uint64_t python_lock_word(const uint8_t bytes[PYTHON_LOCK_BYTES])
{
	uint64_t word;

	memcpy(&word, bytes + LOCK_WORD, sizeof(word));
	return word;
}

uint64_t python_lock_beside(const struct snap_thread *t, struct mem *mem)
{
	const uint64_t futex = t->syscall.args[0];
	uint64_t byte;

	if (futex < t->stack.start + BESIDE || futex >= t->stack.region_end || !mem_read_exact(mem, futex - BESIDE, &byte, sizeof(byte)) ||
	    byte <= LOCK_WORD)
		return 0;
	return byte - LOCK_WORD;
}

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

static bool is_named(const struct python_type *type, const char *name)
{
	const char *dot = strrchr(type->name, '.');

	return strcmp(dot ? dot + 1 : type->name, name) == 0 && (!dot || strncmp(type->name, "_thread.", 8) == 0);
}

bool python_lock_read(const struct python_layout *layout, struct mem *mem, uint64_t object, struct python_lock *out)
{
	struct python_type type;

	*out = (struct python_lock){.kind = WAIT_PYTHON_LOCK};
	if (!python_type_read(mem, object, &type))
		return false;
	if (is_named(&type, "lock"))
		return true;
	if (!is_named(&type, "RLock") || type.basic_size < layout->at[PY_RLOCK_COUNT] + sizeof(out->count))
		return false;
	out->kind = WAIT_PYTHON_RLOCK;
	if (!read_u64(mem, object + layout->at[PY_RLOCK_OWNER], &out->owner) ||
	    !read_u64(mem, object + layout->at[PY_RLOCK_COUNT], &out->count) || out->count > MAX_COUNT)
		out->owner = out->count = 0;
	return true;
}

uint64_t python_end_of_lock(const struct python_layout *layout, struct mem *mem, uint64_t object)
{
	uint64_t reference;

	return python_minor(layout) <= 12 && read_u64(mem, object + LOCK_REFERENCES, &reference) ? reference : 0;
}

/* PyThreadState.on_delete_data */
uint64_t python_end_of_thread(const struct python_layout *layout, struct mem *mem, uint64_t tstate)
{
	const unsigned minor = python_minor(layout);
	uint64_t reference;

	return minor <= 12 && read_u64(mem, tstate + layout->at[PY_TSTATE_THREAD] + (minor > 10 ? 40 : 32), &reference) ? reference : 0;
}

/* ThreadHandle.thread_is_exiting */
uint64_t python_end_beside(struct mem *mem, uint64_t object)
{
	const uint64_t byte = object + LOCK_WORD;
	uint64_t self, handle;
	uint32_t known;

	if (byte <= END_SELF || (byte - END_SELF) % sizeof(self) || !read_u64(mem, byte - END_SELF, &self) ||
	    !read_u64(mem, byte - END_HANDLE, &handle) || !mem_read_exact(mem, byte - END_KNOWN, &known, sizeof(known)))
		return 0;
	return self == handle && known == 1 ? self : 0;
}
