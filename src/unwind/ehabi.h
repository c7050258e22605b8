/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_EHABI_H
#define STAKEOUT_UNWIND_EHABI_H

#include <stdint.h>

#include "elf/image.h"
#include "unwind/cfi.h"

/*
 * The exception tables of 32-bit ARM (.ARM.exidx, .ARM.extab), which has these instead of .eh_frame. They tell where a function
 * has its caller's registers while it calls another; elsewhere, while it sets its frame up or takes it down, they may be wrong.
 */

/* 0 and the row; -ENOENT: no table covers the address; -EINVAL: damaged, or it is said that nothing is known. */
int ehabi_find_row(const struct image *image, uint64_t address, struct cfi_row *out);

#endif
