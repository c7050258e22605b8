/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_PARSE_H
#define STAKEOUT_CMD_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* The values of options. */

/* A number with an optional suffix k, m or g; false when it is not one or is out of [min, max]. */
bool parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* The position of `value` in the NULL-terminated list, or -EINVAL with a sentence that names what is allowed. */
int parse_word(const char *option, const char *value, const char *const *words, struct err *err);

/*
 * A time with a suffix ns, us (or µs), ms, s, min or h, with a fraction if need be: "1.5ms". Without a suffix the
 * number is of `unit` nanoseconds; with `unit` 0 only 0 may do without. False when it is not one.
 */
bool parse_duration(const char *text, uint64_t unit, uint64_t *ns);

#endif
