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
 * Estimates the waits of processes without BPF: one of our threads looks at all of theirs again and again, through
 * /proc, without stopping any. A thread that is asleep at two looks, and got no CPU in between, has waited all the
 * while. The wait counts from the first look that saw it to the one that sees it over, or to the end of the recording;
 * so it may be up to one interval too long or too short, and on average is neither. Waits that fall between two looks
 * are not seen.
 */
struct sampler_options {
	struct watch_options watch; /* wakers and runnable threads cannot be seen: a note says so */
	const char *why; /* a sentence for the notes: why not with BPF, and what would help; NULL: it was asked for */
};

/* Starts at once. -EINVAL when none of the wanted states can be seen; -ESRCH and other errors as process_open(). */
int sampler_start(const struct sampler_options *options, struct err *err, struct watch **out);

uint64_t sampler_looks(const struct watch *sampler); /* looks at all threads, so far */

#endif
