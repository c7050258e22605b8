/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_NAME_KINDS_H
#define STAKEOUT_OFFCPU_NAME_KINDS_H

#include <stdbool.h>

#include "model/stack.h"

/* What the name of a function says about it. */
enum name_kind {
	NAME_KERNEL_WORK = 1 << 0, /* in the kernel, waiting for something that is work for the thread */
	NAME_FUTEX = 1 << 1,       /* in the kernel: behind condition variables and behind locks */
	NAME_CALL = 1 << 2,        /* in the C library, a call that waits for work */
	NAME_PLUMBING = 1 << 3,    /* in the C library, between such a call and the system call */
	NAME_CONDITION = 1 << 4,   /* a condition variable, or how a runtime parks a thread */
	NAME_LOCK = 1 << 5,        /* something to do with a lock */
	NAME_SEMAPHORE = 1 << 6,   /* in the C library: may be a pool's, or stand for a lock */
	NAME_SLEEP = 1 << 7,       /* in a runtime, sleeping for a time, whatever the system call */
	NAME_OTHERS = 1 << 8,      /* for other threads: to end, to come to a barrier, to have a result */
	NAME_KINDS = 9,            /* bits */
};

/* A set of enum name_kind, of a function in native code or in the kernel. */
unsigned offcpu_name_kinds(const char *symbol);

/* The same of any frame; 0: it has no name. */
unsigned offcpu_frame_kinds(const struct frame *frame);

/* A lock of a language runtime itself, which code that has nothing to do with locks may wait for. */
bool offcpu_is_runtime_lock(const char *symbol);

#endif
