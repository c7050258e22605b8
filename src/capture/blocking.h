/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_BLOCKING_H
#define STAKEOUT_CAPTURE_BLOCKING_H

#include "arch/arch.h"
#include "model/descriptor.h"
#include "model/snapshot.h"

/* In which of its arguments a system call has what a thread that is blocked in it waits for. */

enum blocking_form {
	BLOCKING_FD,	  /* a descriptor */
	BLOCKING_TWO_FDS, /* one to read from, or one to write to */
	BLOCKING_EPOLL,
	BLOCKING_POLL,	  /* an array of struct pollfd, and how many */
	BLOCKING_SELECT,  /* three bitmaps of so many descriptors */
	BLOCKING_PATH,	  /* a pointer to a path */
};

struct blocking_call {
	const char *name;
	enum wait_kind kind;
	enum blocking_form form;
	uint8_t arg;   /* the descriptor, the path, or the first of the arguments that tell the set */
	uint8_t other; /* BLOCKING_TWO_FDS: the one to write to; BLOCKING_PATH: the directory, if has_directory */
	bool has_directory;
};

/* NULL: it waits for something else. */
const struct blocking_call *blocking_call_of(const struct arch *arch, const struct snap_thread *thread);

/* Those that the arguments themselves are; how many: none, one or two. */
unsigned blocking_descriptors(const struct blocking_call *call, const struct snap_syscall *syscall, int fds[static 2]);

#endif
