/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_QUOTES_H
#define STAKEOUT_RUNTIME_PYTHON_QUOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QUOTED_CHARACTER = 10 }; /* most bytes of one: \U0001f600 */

/* What repr() begins and ends a str or bytes object with: ' unless it has such, and no ". */
char quotes_choose(const uint32_t *characters, size_t n);

/* One character as repr() shows it; those of bytes are `narrow`. Returns how many bytes. */
size_t quotes_put(char *out, uint32_t c, char quote, bool narrow);

#endif
