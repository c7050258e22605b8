/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_LOCKS_MUSL_H
#define STAKEOUT_WAIT_LOCKS_MUSL_H

#include "wait/locks.h"

/* By the value alone, as a static program has no library to know it by: glibc's locks for readers and writers never have that bit. */
bool lock_is_rwlock_of_musl(const struct futex_wait *f);

/* The same as lock_of_futex() where musl's code waits, in a function for `f->names.kind`. False: it is none of its locks. */
bool lock_of_musl(const struct futex_wait *f, struct lock *out);

#endif
