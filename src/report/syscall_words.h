/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_SYSCALL_WORDS_H
#define STAKEOUT_REPORT_SYSCALL_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Writes the value of a system call's parameter by the names that programs use: "LOCK_EX", "WEXITED|WNOHANG". `param` has
 * `len` characters. False: there are none for it, and nothing was written.
 */
bool syscall_word(FILE *out, const char *call, const char *param, size_t len, uint64_t value);

#endif
