/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_DYNSYM_H
#define STAKEOUT_ELF_DYNSYM_H

#include <elf.h>
#include <stdbool.h>

#include "elf/image.h"

/*
 * The dynamic symbols found the way the dynamic linker finds them, through PT_DYNAMIC: for files whose section
 * headers were stripped, and for images copied from memory, where section headers are not mapped.
 */

/*
 * Called for each symbol, except those with overlong names; the name, of `len` bytes, lives as long as the image. False
 * stops.
 */
typedef bool (*dynsym_visit)(void *ctx, const Elf64_Sym *sym, const char *name, size_t len);

/* False when `visit` stopped it. */
bool dynsym_read(struct image *image, dynsym_visit visit, void *ctx);

#endif
