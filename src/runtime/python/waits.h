/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_WAITS_H
#define STAKEOUT_RUNTIME_PYTHON_WAITS_H

#include "base/map.h"
#include "model/snapshot.h"
#include "model/wait.h"
#include "runtime/python/chain.h"
#include "runtime/python/layout.h"
#include "runtime/python/roster.h"
#include "target/ask.h"
#include "target/thread_copies.h"

/* What Python's threads wait for: the GIL, as it was when each of them was read, or a lock object, which is looked for after that. */
struct python_waits {
	const struct python_layout *layout;
	struct python_roster *roster; /* a thread's lock is noted there */
	struct mem *mem;	      /* what is no thread's own: it keeps what is read */
	struct thread_copies *copies;
	const struct u64map *gils; /* by thread state: struct python_gil */
	struct mem *now;	   /* memory that is read anew each time */
	struct python_chain *chain; /* to work with */
	bool *gave_up;		    /* set: there was too much to look at to tell who has Locks */
};

enum { PYTHON_WAITS_ROUNDS = 1 };

/* For struct asker, of the process as a whole. */
bool python_waits_ask(const struct python_waits *waits, const struct snapshot *snap, const struct ask *answers, struct ask *wants);

/* When all threads have told of the GIL. */
void python_waits_tell(const struct python_waits *waits, const struct snapshot *snap, const struct snap_thread *thread,
		       struct runtime_wait *out);

#endif
