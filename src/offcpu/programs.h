/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_PROGRAMS_H
#define STAKEOUT_OFFCPU_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "model/offcpu.h"
#include "offcpu/waits.h"

/* What the processes run whose waits are recorded. Of one that came and went in between only the name is known. */
struct programs;

/* NULL when memory is exhausted. */
struct programs *programs_create(void);
void programs_destroy(struct programs *programs);

/* Reads these processes as they are now. */
void programs_read(struct programs *programs, const pid_t *pids, size_t n);

/* The same for all that are there, and for those that have waits. */
void programs_read_all(struct programs *programs);
void programs_read_waiting(struct programs *programs, const struct waits *waits);

/* Fills in the processes of a profile that is of these waits. Strings are the programs'. False when memory is
 * exhausted. */
bool programs_fill(const struct programs *programs, const struct waits *waits, struct offcpu_profile *out);

#endif
