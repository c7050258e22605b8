/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_SEARCH_H
#define STAKEOUT_UNWIND_SEARCH_H

#include "unwind/record.h"

/* Finding the FDE of an address: in the table of .eh_frame_hdr, else in an index made by reading the section once. */

/* 0, -ENOENT or -ENOMEM */
int search_fde(struct cfi_section *section, uint64_t address, struct fde *out);

/* How many FDEs the table or the index names; negative: -ENOMEM. */
ssize_t search_count(struct cfi_section *section);

/* The i-th by rising address; false when it is damaged. */
bool search_nth(const struct cfi_section *section, size_t i, struct fde *out);

#endif
