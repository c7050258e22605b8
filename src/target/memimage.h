/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_MEMIMAGE_H
#define STAKEOUT_TARGET_MEMIMAGE_H

#include "base/err.h"
#include "model/snapshot.h"
#include "target/memory.h"

/*
 * The last resort for a file that is deleted and cannot be opened: its loaded segments, copied from the target's
 * memory. They hold the unwind tables and the exported names.
 *
 * [first, last] are the object's mappings in snap->maps. The copy is made to read like the file:
 * what the dynamic linker relocated in the dynamic section is undone, and the section headers, which are not in memory,
 * are taken out of the ELF header. Its bytes belong to the snapshot's arena.
 */
int memimage_copy(struct snapshot *snap, struct memory *memory, size_t first, size_t last, struct err *err,
		  struct mem_copy *out);

#endif
