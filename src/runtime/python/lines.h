/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_LINES_H
#define STAKEOUT_RUNTIME_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

/*
 * The line of an instruction, by the table that its code object has: lnotab up to 3.9, ranges of bytes in 3.10, locations
 * since 3.11. `offset` is in bytes; -1 stands before the first instruction, which is on the first line. 0: it has no line,
 * as code has that the compiler added by itself, or the table is damaged.
 */
uint32_t python_line(unsigned minor, const uint8_t *table, size_t len, uint32_t first_line, int64_t offset);

#endif
