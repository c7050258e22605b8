/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_BESIDES_H
#define STAKEOUT_CAPTURE_BESIDES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "capture/capture.h"
#include "model/snapshot.h"

/*
 * What tells why threads are blocked, but is neither their registers nor their memory: descriptors and who has their other ends. Where all
 * threads have slept for long it is gathered between the two passes over them, and the second one proves that too. Else it is gathered right
 * after the last pass, while the process goes on, and the counters are read once more: who has neither run nor been woken since it was captured was
 * blocked in that call all the while, at the instant of the snapshot and when the facts were read (snap_thread.still_besides). Of the others
 * the facts are kept, but they are not certain.
 *
 * To add facts: a place for them in the snapshot, its part of the saved file, and a gatherer in the list in besides.c.
 */

/* One process that was just captured. */
struct besides {
	struct capture *capture;
	struct snapshot *snap;
	bool *gathered; /* beside snap->threads: something was gathered for the thread, and it has to be looked at again */
};

/* For several processes at once: some things are searched for on the whole machine, and only once. 0 or -ENOMEM. */
typedef int besides_gatherer(struct besides *all, size_t n);

besides_gatherer gather_descriptors;  /* descriptors.c */
besides_gatherer gather_file_locks;   /* file_locks.c */
besides_gatherer gather_thread_facts; /* thread_facts.c */
besides_gatherer gather_handlers;	      /* handlers.c; marks no threads: a process says itself what it does for signals */

/*
 * Of threads in these snapshots; `capture` and `snap` are set. What cannot be had is told in notes. 0, or -ENOMEM with a sentence; *any: there is
 * something to be proved by another pass.
 */
int besides_gather(struct besides *all, size_t n, struct err *err, bool *any);

/* After such a pass. */
void besides_judge(const struct capture *capture, struct snapshot *snap);

#endif
