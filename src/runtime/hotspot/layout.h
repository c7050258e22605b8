/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_LAYOUT_H
#define STAKEOUT_RUNTIME_HOTSPOT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/pages.h"

/*
 * What a virtual machine says of itself in gHotSpotVMStructs: where the fields of its structures are, how large types are,
 * and a few values that do not change once it has started. All of it is in one array of numbers, which is saved with a
 * snapshot. Which of the alternatives a release has is told by presence, never by its version.
 */
enum hotspot_fact { /* append-only: their numbers are in saved snapshots */
	/* values */
	HS_FEATURE,     /* 8, 11, 17… */
	HS_CALL_RETURN, /* where Java methods return to that native code called */
	HS_NHEAPS,
	HS_HEAPS, /* for each of HS_MAX_HEAPS: start, end, its segment map, end of that, log2 of a segment's size */
	HS_HEAPS_LAST = HS_HEAPS + 8 * 5 - 1,

	/* sizes of types */
	HS_SIZE_HEAP_BLOCK,
	HS_SIZE_CONST_METHOD,
	HS_SIZE_CONSTANT_POOL,
	HS_SIZE_PC_DESC,

	/* fields: see hotspot_field() */
	HS_BLOB_NAME,
	HS_BLOB_SIZE,
	HS_BLOB_FRAME_SIZE,
	HS_BLOB_FRAME_COMPLETE,
	HS_BLOB_CODE_BEGIN,
	HS_BLOB_CODE_END,
	HS_BLOB_CODE_OFFSET,
	HS_BLOB_DATA_OFFSET,
	HS_BLOB_MUTABLE_DATA,
	HS_BLOB_RELOCATION_SIZE,
	HS_NM_METHOD,
	HS_NM_COMP_LEVEL,
	HS_NM_COMPILE_ID,
	HS_NM_ORIG_PC_OFFSET,
	HS_NM_DEOPT_HANDLER,        /* a pointer, */
	HS_NM_DEOPT_HANDLER_OFFSET, /* or an offset */
	HS_NM_METADATA_OFFSET,
	HS_NM_SCOPES_PCS_OFFSET,
	HS_NM_SCOPES_DATA_OFFSET,
	HS_NM_SCOPES_DATA_BEGIN,
	HS_NM_DEPENDENCIES_OFFSET,
	HS_NM_IMMUTABLE_DATA,
	HS_NM_IMMUTABLE_DATA_SIZE,
	HS_PC_DESC_PC_OFFSET,
	HS_PC_DESC_SCOPE_OFFSET,
	HS_METHOD_CONST,
	HS_METHOD_ACCESS_FLAGS,
	HS_CONST_CONSTANTS,
	HS_CONST_FLAGS,
	HS_CONST_CODE_SIZE,
	HS_CONST_NAME_INDEX,
	HS_POOL_HOLDER,
	HS_POOL_LENGTH,
	HS_POOL_SOURCE_FILE,
	HS_KLASS_SOURCE_FILE,
	HS_KLASS_NAME,
	HS_SYMBOL_LENGTH,
	HS_SYMBOL_LENGTH_AND_REFCOUNT,
	HS_SYMBOL_BODY,
	HS_KLASS_CONSTANTS,
	HS_KLASS_FIELDS,       /* an array of six u2 for each field, */
	HS_KLASS_FIELD_COUNT,  /* of the array */
	HS_KLASS_FIELD_STREAM, /* or a compressed stream */
	HS_LIST_LENGTH,
	HS_LIST_THREADS,
	HS_THREAD_NEXT,
	HS_THREAD_STACK_BASE,
	HS_THREAD_STACK_SIZE,
	HS_THREAD_OBJECT,
	HS_LAST_FIELD = HS_THREAD_OBJECT,

	/* what threads need: they have no names without it */
	HS_AT_THREADS_LIST, /* addresses of variables: of a list, */
	HS_AT_FIRST_THREAD, /* or of its first element */
	HS_THREAD_OBJECT_IS_HANDLE,
	HS_CLASS_THREAD, /* addresses of classes */
	HS_CLASS_FIELD_HOLDER,
	HS_CLASS_STRING,
	HS_NARROW_OOP_BASE,
	HS_NARROW_OOP_SHIFT,
	HS_NARROW_KLASS_BASE,
	HS_NARROW_KLASS_SHIFT,

	/* what waits over time need */
	HS_HEAP_LIMITS, /* for each of HS_MAX_HEAPS: how far it may grow, and its segment map */
	HS_HEAP_LIMITS_LAST = HS_HEAP_LIMITS + 8 * 2 - 1,
	HS_INTERPRETER, /* its code, */
	HS_INTERPRETER_SIZE,
	HS_THREAD_OS, /* fields: what the system knows of a thread, */
	HS_OS_THREAD_ID, /* its number there */

	/* what tells of locks; without it only frames do */
	HS_THREAD_PENDING, /* fields of a thread: the monitor that it is about to enter, */
	HS_THREAD_WAITING, /* that it waits for a notification of, */
	HS_THREAD_OWNER_ID, /* what monitors have as the owner, since 24, */
	HS_THREAD_LOCKS,    /* objects that it has locked without a monitor, */
	HS_THREAD_CURRENT,  /* and the object of the virtual thread that it carries, or its own */
	HS_LOCKS_TOP,
	HS_LOCKS_BASE,
	HS_MONITOR_OBJECT,
	HS_MONITOR_OWNER,
	HS_MONITOR_RECURSIONS,
	HS_KLASS_SUPER,
	HS_HEAP_COLLECTIONS, /* of the heap: how often garbage was collected, which is counted when it begins, */
	HS_HEAP_ACTIVE,	     /* and whether it is being so, which is set before that */
	HS_LAST_LOCK_FIELD = HS_HEAP_ACTIVE,
	HS_HEAP,	   /* its address */
	HS_HEAP_MOVES,	   /* not 0: objects are moved while Java's threads run */
	HS_HEAP_WAS_STILL, /* 1: none was moved while locks were read */

	HS_FACT_COUNT,
};

enum { HS_MAX_HEAPS = 8 };

#define HS_ABSENT UINT64_MAX

struct layout {
	uint64_t facts[HS_FACT_COUNT];
};

struct field {
	uint32_t offset;
	uint8_t size; /* 1, 2, 4 or 8 */
	bool is_signed;
};

static inline bool layout_has(const struct layout *layout, enum hotspot_fact fact)
{
	return layout->facts[fact] != HS_ABSENT;
}

/* How a field is kept as a number, and back. */
uint64_t layout_pack_field(uint64_t offset, unsigned size, bool is_signed);
struct field layout_field(const struct layout *layout, enum hotspot_fact fact);

/* From the numbers of a snapshot: those that it does not have are absent. */
void layout_load(struct layout *layout, const uint64_t *facts, uint32_t n);

/* From now on the heaps are as large as they can become: what is read of the process may be of any time. */
void layout_let_heaps_grow(struct layout *layout);

/* Why it cannot be used; NULL: everything that is needed is there, and fits together. */
const char *layout_problem(const struct layout *layout);

/* The field of a structure at `base`, sign-extended. False: it cannot be read, or there is no such field. */
bool layout_read(const struct layout *layout, struct pages *pages, uint64_t base, enum hotspot_fact fact, uint64_t *out);

/* The same of a structure that was read: the first `len` bytes of it. */
bool layout_get(const struct layout *layout, const uint8_t *bytes, size_t len, enum hotspot_fact fact, uint64_t *out);

#endif
