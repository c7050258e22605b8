/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_LIB_ABI_H
#define STAKEOUT_LIB_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "stakeout.h"

/*
 * Structs of programs that were built with an older or a newer header: their first field is a size_t with the size that the
 * program knows. Ours are passed with their own.
 */

/* Options, whose second field are flags. NULL: there are none. -EINVAL, -E2BIG. */
int abi_read_options(const void *theirs, void *own, size_t size, uint64_t known_flags, struct err *err);

/* Leaves what fits, and zeroes behind it. -EINVAL when there is no room at all. */
int abi_write(void *theirs, const void *own, size_t size);

#endif
