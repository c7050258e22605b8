/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_SAMPLE_SAMPLER_H
#define STAKEOUT_OFFCPU_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "model/offcpu.h"
#include "symbol/native_names.h"

/*
 * Estimates the waits of processes without BPF: a thread looks at all of theirs again and again, through /proc, and
 * stops none. A thread that is asleep at two looks, and got no CPU in between, has waited all the while. The wait
 * counts from the first look that saw it to the one that sees it over, or to the end of the recording; so it may be as
 * much as one interval too long or too short, and on average is neither. What falls between two looks is not seen.
 */
struct sampler;

struct sampler_options {
	const pid_t *pids; /* the processes to watch, unless all are */
	size_t npids;
	bool all_processes;
	bool children;
	bool by_thread;
	bool kernel_stacks;
	bool user_stacks;
	bool sleeping; /* states S and D */
	bool uninterruptible;
	bool wakers; /* cannot be had: a note says so */
	uint64_t min_ns;
	uint64_t max_ns;
	const char *why; /* a sentence, for the notes: why not by BPF, and what would help; NULL: it was asked for */
	struct native_names_options names; /* `find` is ours */
};

struct sampler_progress {
	uint64_t looks; /* at all threads */
	uint64_t waits;
	uint64_t lost;
};

/* Starts at once. -EINVAL when no state is wanted that can be seen; -ESRCH and others as process_open(). */
int sampler_start(const struct sampler_options *options, struct err *err, struct sampler **out);
void sampler_destroy(struct sampler *sampler);

/* The last of the processes has ended; never when all are looked at. */
bool sampler_is_over(const struct sampler *sampler);

/* As it is now. */
struct sampler_progress sampler_progress(const struct sampler *sampler);

/* No more looks from now on. */
void sampler_stop(struct sampler *sampler);

/* Ends it, names everything and leaves the result in *out, whose strings and stacks belong to the sampler. */
int sampler_finish(struct sampler *sampler, struct err *err, struct offcpu_profile *out);

#endif
