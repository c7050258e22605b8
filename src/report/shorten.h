/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_SHORTEN_H
#define STAKEOUT_REPORT_SHORTEN_H

#include <stddef.h>

#include "model/stack.h"

/* How many columns a terminal needs for it: one for each character. */
size_t text_columns(const char *s);

/*
 * The name in at most `max` columns, where that is possible: arguments of templates become "<…>", then parameters "(…)",
 * then the middle "…". A copy for free(), or NULL when memory is exhausted.
 */
char *shorten_name(const char *name, size_t max);

/* The same of a frame's name; a method of Java loses its package first. */
char *shorten_symbol(const struct frame *frame, size_t max);

#endif
