/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DOCTOR_RIGHTS_H
#define STAKEOUT_DOCTOR_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "privilege/remedy.h"
#include "proc/lsm.h"

/* What this process may do, and what on this machine may be in the way. */
struct rights {
	struct standing standing;
	bool is_locked_down;    /* the kernel, even against root */
	struct lsm_label label; /* by which a security module confines it */
};

void rights_read(struct rights *rights);

/*
 * What helps where this was refused: a command, or words. NULL: nothing is known to be in the way. syscall: what was called,
 * which a filter may refuse; NULL: nothing that filters do.
 */
const char *rights_remedy(const struct rights *rights, enum refused what, const char *syscall, struct arena *arena);

#endif
