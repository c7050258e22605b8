/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_TEXT_FORMAT_H
#define STAKEOUT_REPORT_TEXT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "arch/arch.h"
#include "model/snapshot.h"

/* The small pieces of the text report. */

enum style {
	STYLE_PLAIN,
	STYLE_STRONG, /* thread names, user functions */
	STYLE_DIM,    /* addresses and other things that are rarely read */
	STYLE_KERNEL,
	STYLE_CALL,   /* system calls */
	STYLE_GOOD,
	STYLE_BAD,
};

struct text {
	FILE *out;
	bool color;
};

/* Starts a style; STYLE_PLAIN ends it. */
void text_style(const struct text *t, enum style style);

/* A string from the target: control characters are shown as \x1b or \u202e, wrong UTF-8 as U+FFFD. */
void text_untrusted(const struct text *t, const char *s);

/* "23 µs", "1.9 ms", "12.3 s", "3 min 12 s", "2 h 05 min", "3 d 04 h": two or three digits that matter. */
enum { DURATION_LEN = 32 };
const char *format_duration(uint64_t ns, char buf[DURATION_LEN]);

/* "S sleeping", "R ready, no CPU"…, in at least so many columns. */
void text_state(const struct text *t, const struct snap_thread *thread, int columns);

/* The last `keep` components of a path. */
const char *path_tail(const char *path, unsigned keep);

#endif
