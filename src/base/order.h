/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_ORDER_H
#define STAKEOUT_BASE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* For functions that qsort() calls: less than 0, 0, or more than 0. */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* NULL comes first. */
static inline int compare_texts(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static inline bool same_text(const char *a, const char *b)
{
	return compare_texts(a, b) == 0;
}

#endif
