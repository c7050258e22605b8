/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_RECORD_UNFINISHED_H
#define STAKEOUT_OFFCPU_RECORD_UNFINISHED_H

#include "base/err.h"
#include "kernel/offcpu_probe.h"
#include "offcpu/feed/tables.h"
#include "offcpu/waits.h"

/*
 * The stacks of threads that wait when a recording ends: those that hang are among them. Nobody stops them; that a thread
 * has not got a CPU since its stacks were read proves that they are those of its wait.
 */
struct unfinished;

struct unfinished_options {
	bool kernel_stacks;
	bool user_stacks;
};

/* Reads the stacks of all threads of watched processes that have no CPU now. */
int unfinished_read(struct offcpu_probe *probe, struct tables *tables, const struct unfinished_options *options,
		    struct err *err, struct unfinished **out);
void unfinished_destroy(struct unfinished *unfinished);

/* Gives `waits` the stack of a wait that is still open, and the wait its id. */
void unfinished_add_stack(struct unfinished *unfinished, const struct offcpu_open *open, struct waits *waits,
			  struct offcpu_wait *wait);

/* Where unfinished_read() has failed: the same for all such waits, why. Unless user stacks are wanted, only for kernel stacks. */
void unfinished_add_reason(const char *why, bool user_stacks, struct waits *waits, struct offcpu_wait *wait);

#endif
