/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_WORDS_H
#define STAKEOUT_KERNEL_WORDS_H

#include <linux/types.h>

#include "base/vec.h"

/* What an iterator wrote, 8-byte aligned as its records are. */
struct words {
	VEC_FIELDS(__u64);
};

#endif
