/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WATCH_ROUNDS_H
#define STAKEOUT_WATCH_ROUNDS_H

#include "model/watch.h"

/*
 * How a watch learns of a round: watch_begin_round(), then for each process watch_see() or watch_miss(). That takes no more than stacks
 * as they were walked; the names of places come later.
 */
void watch_begin_round(struct watch_log *watch, uint64_t now_ns);

/* A process was looked at. The trace must stay until the process is seen again, or the watch is not used any more. False when memory is exhausted. */
bool watch_see(struct watch_log *watch, const struct trace *trace);

/* A process could not be looked at, for this reason; or it has ended. Its threads stay as they were, or have ended with it. */
bool watch_miss(struct watch_log *watch, pid_t pid, bool ended, const char *why);

/* What there is to know of this round. */
void watch_note(struct watch_log *watch, const char *note);

/*
 * True when threads have moved, were born or have ended in the last round: then there may be something to name, and new waits. Also when others can
 * end a wait now, or cannot any more, who need not be watched: then those who wait did not move, but they may be left to each other.
 */
bool watch_has_changed(const struct watch_log *watch);

/* The function that a thread was found in, in the last round; to be called once for each thread and round. NULL: not known. */
void watch_put_place(struct watch_log *watch, struct watched_thread *thread, const char *name);

/* Stands for a stack: equal for equal ones. 0: it is not known. */
uint64_t watch_stack_key(const struct trace_thread *thread);

#endif
