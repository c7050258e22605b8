/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_LOCK_NAMES_H
#define STAKEOUT_WAIT_LOCK_NAMES_H

#include "model/trace.h"

/* What the names in a stack tell of a futex that the thread waits for. */
struct lock_names {
	enum wait_kind kind; /* what the function waits for that has called the kernel, be it through others of its library; WAIT_NOTHING: not known */
	bool own;   /* by a function for all system calls: then it is something of the program's own, or of its language */
	bool glibc; /* by a C library's own code, whose inner functions have no names where it has no symbol table */
	bool musl;
};

struct lock_names lock_names_of(const struct stack *user);

#endif
