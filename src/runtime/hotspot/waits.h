/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_WAITS_H
#define STAKEOUT_RUNTIME_HOTSPOT_WAITS_H

#include "model/snapshot.h"
#include "model/wait.h"
#include "runtime/hotspot/threads.h"

/* What the threads of a snapshot wait for, if they are Java's. */

/* The one whose stack it uses; NULL: it is none of Java's. */
const struct java_thread *java_waits_thread(const struct java_threads *threads, const struct snapshot *snap, const struct snap_thread *thread);

/* Reads all that tells of them, so that what is lacking is wanted. */
void java_waits_know(const struct java_threads *threads, const struct snapshot *snap);

/* Finds out which thread of the snapshot each of them is, once for a list. */
void java_waits_number(struct java_threads *threads, const struct snapshot *snap);

/* After java_waits_number(). Leaves it as it is if nothing is known. */
void java_waits_tell(const struct java_threads *threads, const struct snapshot *snap, const struct snap_thread *thread,
		     struct runtime_wait *out);

#endif
