/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_EXPORTS_H
#define STAKEOUT_TARGET_EXPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mem.h"

/*
 * Whether the object that is mapped at `start`, with the beginning of its file, may export a symbol: by its hash table (DT_GNU_HASH)
 * in memory, of which a few words are read. No file is opened, so that it can be asked of each process. The name is not compared: who
 * needs to be sure looks into the file (elf/exported.h). False without such a table.
 */
bool exports_may_have(struct mem *mem, uint64_t start, const char *name);

#endif
