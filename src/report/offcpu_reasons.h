/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_OFFCPU_REASONS_H
#define STAKEOUT_REPORT_OFFCPU_REASONS_H

#include "model/offcpu.h"

/* Why stacks are missing or end early, added up over all rows. */

enum offcpu_stack_kind {
	OFFCPU_USER_STACK,
	OFFCPU_KERNEL_STACK,
	OFFCPU_WAKER_USER_STACK,
	OFFCPU_WAKER_KERNEL_STACK,
	OFFCPU_STACK_KINDS,
};

struct offcpu_reason {
	enum offcpu_stack_kind kind;
	const char *words; /* the heaviest row's, if addresses differ; borrowed from the profile */
	uint64_t waits;
	uint64_t total_ns;
};

struct offcpu_reasons {
	VEC_FIELDS(struct offcpu_reason);
};

/* By kind, the most common first. False when memory is exhausted. */
bool offcpu_reasons_find(struct offcpu_reasons *reasons, const struct offcpu_profile *profile);

static inline void offcpu_reasons_deinit(struct offcpu_reasons *reasons)
{
	vec_deinit(reasons);
}

/* Whether both say the same, apart from addresses (0x12ab) in them. Both may be NULL. */
bool offcpu_same_reason(const char *a, const char *b);

/* Adds a reason to a hash: equal for equal reasons. */
uint64_t offcpu_hash_reason(uint64_t hash, const char *reason);

#endif
