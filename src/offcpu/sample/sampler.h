/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_SAMPLE_SAMPLER_H
#define STAKEOUT_OFFCPU_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "offcpu/watch.h"

/*
 * Estimates the waits of processes without BPF: a thread looks at all of theirs again and again, through /proc, and
 * stops none. A thread that is asleep at two looks, and got no CPU in between, has waited all the while. The wait
 * counts from the first look that saw it to the one that sees it over, or to the end of the recording; so it may be as
 * much as one interval too long or too short, and on average is neither. What falls between two looks is not seen.
 */
struct sampler_options {
	struct watch_options watch; /* wakers and who is ready cannot be had: a note says so */
	const char *why; /* a sentence, for the notes: why not by BPF, and what would help; NULL: it was asked for */
};

/* Starts at once. -EINVAL when no state is wanted that can be seen; -ESRCH and others as process_open(). */
int sampler_start(const struct sampler_options *options, struct err *err, struct watch **out);

uint64_t sampler_looks(const struct watch *sampler); /* at all threads, so far */

#endif
