/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_GO_WAITS_H
#define STAKEOUT_WAIT_GO_WAITS_H

#include "model/trace.h"

/*
 * What threads of Go's runtime wait for. Goroutines that wait have no thread: who waits in a futex there is the runtime itself, which has
 * nothing to do, and no lock of the program.
 */

/* By its functions alone: sets t->wait, and says so. False: it is none of these. */
bool go_wait_find(struct trace_thread *t);

/* Whether it looks for what goroutines wait for on descriptors. */
bool go_is_polling(const struct stack *user);

#endif
