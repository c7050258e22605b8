/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_THREAD_COPIES_H
#define STAKEOUT_TARGET_THREAD_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/mem.h"
#include "model/snapshot.h"

/* What was copied of each thread, its stack and more (target/recorder.h), found without a look at what is of others. */
struct thread_copies {
	VEC_FIELDS(struct thread_copy); /* by rising tid */
	size_t of; /* how many copies the snapshot had when they were sorted */
};

struct thread_copy {
	pid_t tid;
	uint32_t index; /* in snap->copies */
};

void thread_copies_deinit(struct thread_copies *copies);

/* Only that: nothing that was read for others, or for the process as a whole. Nothing to free. */
struct thread_copies_mem {
	struct mem mem;
	const struct snapshot *snap;
	const struct snap_thread *thread;
	const struct thread_copy *copies;
	size_t n;
	uint32_t work; /* looks at copies that may still be taken: a file may have any number of them */
};

/* False when memory is exhausted. Good until something is copied. */
bool thread_copies_mem_init(struct thread_copies_mem *mem, struct thread_copies *copies, const struct snapshot *snap,
			    const struct snap_thread *thread);

#endif
