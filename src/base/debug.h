/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_DEBUG_H
#define STAKEOUT_BASE_DEBUG_H

#include <stdbool.h>

/*
 * --debug: what is tried, how it ended and when, on the standard error. It belongs to the program as a whole, and any thread
 * may say something; without the option that costs a look at a flag.
 */
void debug_begin(void); /* times count from here */
bool debug_is_on(void);

/* A line. `rc` is 0 or more for what went well, or a negative errno, which is shown by its name. */
void debug_say(int rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "EPERM"; "errno 1234" for one without a name here. */
const char *debug_errno_name(int code, char buf[static 32]);

#endif
