/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_LOCK_NAMES_H
#define STAKEOUT_WAIT_LOCK_NAMES_H

#include "model/trace.h"

/* What the names in a stack tell of a futex that the thread waits for. */

/* What the function waits for that has called the kernel, be it through others of its library; WAIT_NOTHING: it is not known. */
enum wait_kind lock_kind_by_name(const struct trace_thread *t);

/* By a function for all system calls: then it is something of the program's own, or of its language. */
bool lock_is_own_call(const struct trace_thread *t);

/* By a C library's own code, whose inner functions have no names where it has no symbol table. */
bool lock_is_glibc_call(const struct trace_thread *t);
bool lock_is_musl_call(const struct trace_thread *t);

#endif
