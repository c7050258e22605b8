/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_RECORD_UNFINISHED_H
#define STAKEOUT_OFFCPU_RECORD_UNFINISHED_H

#include "base/err.h"
#include "kernel/offcpu_probe.h"
#include "offcpu/feed/tables.h"
#include "offcpu/waits.h"

/*
 * The stacks of threads that still wait when a recording ends; hanging threads are among them. They are not stopped: a
 * thread that got no CPU since its stacks were read is still in that wait, so the stacks belong to it.
 */
struct unfinished;

struct unfinished_options {
	bool kernel_stacks;
	bool user_stacks;
	struct runtime_processes *runtimes; /* NULL: no frames of runtimes are wanted */
};

/* Reads the stacks of all threads of watched processes that are not on a CPU now. */
int unfinished_read(struct offcpu_probe *probe, struct tables *tables, const struct unfinished_options *options,
		    struct err *err, struct unfinished **out);
void unfinished_destroy(struct unfinished *unfinished);

/* Gives `waits` the stack of a wait that is still open, and the wait its id. */
void unfinished_add_stack(struct unfinished *unfinished, const struct offcpu_open *open, struct waits *waits,
			  struct offcpu_wait *wait);

/* When unfinished_read() has failed: gives such a wait the reason instead, for user stacks only if they are wanted. */
void unfinished_add_reason(const char *why, bool user_stacks, struct waits *waits, struct offcpu_wait *wait);

#endif
