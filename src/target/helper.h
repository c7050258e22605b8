/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_HELPER_H
#define STAKEOUT_TARGET_HELPER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * A process that does what may block for ever, so that it can be given up: a thread that sits in the kernel keeps its whole
 * process from ending. It is a child of ours for one task, made when that comes up: what cannot block never pays for it.
 */

enum { HELPER_MAX_KEEP = 4 };

/* What a task gives back: 0 or -errno, and what goes with that. */
struct helper_reply {
	int rc;
	int fd;         /* handed over to the caller, or -1 */
	struct stat st; /* of a file that was opened */
	uint64_t len;   /* of bytes in the window */
};

struct helper_task {
	/*
	 * Runs in the child, which is single-threaded but was not when it was made: nothing here may allocate or take a lock.
	 * `window` is memory that the caller sees, too.
	 */
	void (*run)(void *arg, uint8_t *window, struct helper_reply *reply);
	void *arg;
	size_t window;             /* bytes; 0: none */
	int keep[HELPER_MAX_KEEP]; /* descriptors that it needs; the others are closed there. Fill up with -1 */
};

/*
 * Runs the task for as long as there is patience. -ETIMEDOUT: it did not answer, and the child is given up. With a window
 * *bytes is a copy of what is there, for free().
 */
int helper_run(const struct helper_task *task, struct helper_reply *reply, uint8_t **bytes);

/* Waits a moment for helpers that are about to end. One that is stuck in the kernel is left. */
void helper_reap_all(void);

#endif
