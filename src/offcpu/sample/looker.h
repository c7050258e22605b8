/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_SAMPLE_LOOKER_H
#define STAKEOUT_OFFCPU_SAMPLE_LOOKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "offcpu/sleeping.h"
#include "offcpu/waits.h"

/*
 * Looks at the threads of processes through /proc, without stopping any. A thread that is asleep at two looks, and got
 * no CPU in between, has waited all the while: its stacks are taken, and the wait goes to `waits` when it is over. One
 * thread uses it; any may ask for the counts.
 */
struct looker;

struct looker_options {
	bool kernel_stacks;
	bool user_stacks;
	struct offcpu_filter filter; /* except runnable, which cannot be seen */
};

/* What it is given must outlive it. NULL when memory is exhausted. */
struct looker *looker_create(const struct looker_options *options, struct waits *waits, struct sleeping *sleeping);
void looker_destroy(struct looker *looker);

struct looker_counts {
	uint64_t waits;
	uint64_t once; /* seen asleep at one look only: shorter than about an interval */
	uint64_t lost; /* waits for which there was no room */
};

struct looker_counts looker_counts(const struct looker *looker);

/* A process and its threads, as the last look saw them. */
struct watched_process;

/* Fails as process_open() does. */
int watched_process_open(pid_t pid, struct err *err, struct watched_process **out);
void watched_process_close(struct looker *looker, struct watched_process *watched);

/* Looks at all of its threads; kernel threads are left out. False when it has ended, even if still a zombie. */
bool watched_process_look(struct looker *looker, struct watched_process *watched);

/* Ends its waits, since it has ended; `unfinished`: only the recording ends. */
void watched_process_end(struct looker *looker, struct watched_process *watched, bool unfinished);

#endif
