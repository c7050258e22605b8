/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_EXPORTED_H
#define STAKEOUT_ELF_EXPORTED_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "elf/image.h"

/*
 * One symbol that the file exports, by its name: through the hash table as the dynamic linker finds it, which reads a few
 * words of a table of any size; through all dynamic symbols where there is no such table. False: it has none.
 */
bool exported_find(struct image *image, const char *name, Elf64_Sym *out);

/* Of a name, in DT_GNU_HASH. */
uint32_t exported_hash(const char *name);

#endif
