/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_THREAD_FACTS_H
#define STAKEOUT_MODEL_THREAD_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/wait.h"

/* What is known of a thread besides its registers and its memory, about what it waits for: wait/states.c draws conclusions. */

struct thread_facts {
	/* As the passes saw it; not known: -1 or 0. */
	int32_t cpu;	       /* where it ran, or was to run */
	int64_t timer_ns;      /* until the timer of the wait that it is in; negative: it is over by so much; NO_TIMER: it has none */
	uint8_t stop_signal;
	bool throttled;
	uint64_t files; /* which table of descriptors it has; 0: not known. Not saved */
	struct wait_peer ahead; /* who had the CPU that it was ready for; comm NULL: not known */

	/* Gathered after the last pass (capture/thread_facts.c). */
	const struct wait_peer *others; /* children that it waits for, its tracer, its parent, or who last used the object */
	uint32_t nothers;
	uint32_t total;	   /* children, of which `others` are the first */
	bool has_children; /* both are known */
	bool has_handler;	/* its process handles a signal, which may end what the thread waits for, */
	bool has_async_handler; /* and one that others or a timer send; or it has an io_uring, by which the kernel works for it */
	bool frozen;	   /* its control group is, */
	const char *place; /* which one; or the file or the queue that its system call is about, or of which it waits for a page */
	const char *filesystem; /* with a server, but without `place`: a page that it waits for may be of a file there, as such are mapped */
	const char *device;
	bool has_key;
	uint32_t key;
};

#define NO_TIMER INT64_MIN

static const struct thread_facts thread_facts_none = {.cpu = -1, .timer_ns = NO_TIMER};

#endif
