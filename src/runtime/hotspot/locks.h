/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_LOCKS_H
#define STAKEOUT_RUNTIME_HOTSPOT_LOCKS_H

#include "model/mem.h"
#include "model/wait.h"
#include "runtime/hotspot/symbol.h"
#include "runtime/hotspot/threads.h"

/*
 * What a thread of Java that sleeps in a futex waits for: a monitor, which the virtual machine notes in the thread, or what the thread has
 * named when it parked (java.lang.Thread.parkBlocker): a lock of java.util.concurrent names its owner.
 */

enum java_owner {
	JAVA_OWNER_NOBODY,
	JAVA_OWNER_UNKNOWN,
	JAVA_OWNER_THREAD,
	JAVA_OWNER_READERS,
	JAVA_OWNER_ENDED,
};

struct java_wait {
	enum wait_kind kind; /* WAIT_NOTHING: for nothing that is known */
	uint64_t object;     /* 0: not known */
	struct symbol_text type; /* its class; len 0: not known */
	enum java_owner owner;
	const struct java_thread *thread;  /* JAVA_OWNER_THREAD */
	const struct java_thread *subject; /* that the object is of; NULL: of none */
	uint64_t count; /* how often the owner has entered it; 0: not known */
	bool by_objects; /* it was found by references, which a collector may have changed meanwhile */
};

/* Of one of these threads. What is lacking is wanted of its pages. */
void java_wait_read(const struct java_threads *threads, const struct java_thread *thread, struct java_wait *out);

/* What tells whether objects were moved between two readings; all 0: it cannot be told, or they are being moved. */
struct java_heap_state {
	bool still;
	uint32_t collections;
};

struct java_heap_state java_heap_read(const struct layout *layout, struct mem *live);

#endif
