/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_SORTED_H
#define STAKEOUT_BASE_SORTED_H

#include <stddef.h>

/*
 * How many of `n` elements, sorted by `part`, are at or before the key. If they are starts of ranges, the last of those
 * is the range that the key is in; a new element goes behind it. `part` has its dot or arrow:
 *
 * 	size_t upto = sorted_upto(maps->data, maps->len, .start, address);
 */
#define sorted_upto(data, n, part, key)                      \
	({                                                   \
		size_t low_ = 0, high_ = (n);                \
                                                             \
		while (low_ < high_) {                       \
			size_t mid_ = low_ + (high_ - low_) / 2; \
                                                             \
			if ((data)[mid_] part <= (key))      \
				low_ = mid_ + 1;             \
			else                                 \
				high_ = mid_;                \
		}                                            \
		low_;                                        \
	})

#endif
