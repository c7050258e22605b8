/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_UTF8_H
#define STAKEOUT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names come from the target, which may put anything in them. */

enum { UTF8_REPLACEMENT = 0xfffd };

/*
 * The code point at `s` (not at its NUL), or UTF8_REPLACEMENT for a byte that does not begin one; returns its length.
 */
size_t utf8_next(const char *s, uint32_t *code);

enum { UTF8_MAX = 4 };

/* The other way round, up to UTF8_MAX bytes; returns how many. */
size_t utf8_put(char *out, uint32_t code);

/* True for what a terminal obeys instead of showing: control characters, and marks that change the text's direction. */
bool utf8_is_control(uint32_t code);

#endif
