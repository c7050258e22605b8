/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_LOCK_MEMORY_H
#define STAKEOUT_TESTS_LOCK_MEMORY_H

#include <linux/futex.h>
#include <string.h>

#include "model/lock_words.h"
#include "model/snapshot.h"

/* A snapshot in which threads wait for mutexes of glibc. */

static inline int64_t lock_memory_futex(const struct arch *arch)
{
	for (int64_t nr = 0;; nr++)
		if (arch_is_futex(arch, nr))
			return nr;
}

/* A thread that waits at `address` for a mutex that `owner` has; false when memory is exhausted. */
static inline bool lock_memory_add(struct snapshot *snap, pid_t tid, uint64_t address, uint32_t owner)
{
	struct snap_thread t = {.tid = tid, .state = 'S', .syscall = {.state = SYSCALL_IN, .nr = lock_memory_futex(snap->arch)}};
	struct snap_copy copy = {.tid = tid, .copy = {.start = address, .len = WAIT_BYTES, .region_end = address + WAIT_BYTES}};
	uint32_t words[WAIT_WORDS] = {LOCKED_AND_AWAITED, 0, owner, 1};

	t.syscall.args[0] = address;
	t.syscall.args[1] = FUTEX_WAIT;
	t.syscall.args[2] = LOCKED_AND_AWAITED;
	copy.copy.data = arena_alloc(snap->arena, sizeof(words));
	if (!copy.copy.data)
		return false;
	memcpy(copy.copy.data, words, sizeof(words));
	return vec_push(&snap->threads, t) && vec_push(&snap->copies, copy);
}

#endif
