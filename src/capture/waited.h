/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_WAITED_H
#define STAKEOUT_CAPTURE_WAITED_H

#include "arch/arch.h"
#include "model/snapshot.h"
#include "model/wait.h"

enum { WAITED_BYTES = WAIT_BYTES };

/*
 * The memory that tells what a thread in this system call waits for, and who has it: `start` and `len`, without data; len 0: there
 * is none. It is read while the thread sleeps, with its stack.
 */
struct mem_copy waited_memory(const struct maps *maps, const struct arch *arch, const struct snap_syscall *syscall);

/* It is part of what is copied of the thread's stack. */
bool waited_is_copied(const struct mem_copy *waited, const struct mem_copy *stack);

#endif
