/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_WRAP_H
#define STAKEOUT_REPORT_WRAP_H

#include <stddef.h>
#include <stdio.h>

/*
 * Writes the text so that no line has more than `width` columns, where words allow that: a longer one goes on below, a
 * little further in than it began, and parts with two spaces between them stay whole. Codes for colours take no column.
 */
void wrap_lines(const char *text, size_t width, FILE *out);

#endif
