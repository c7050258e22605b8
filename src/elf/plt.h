/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_PLT_H
#define STAKEOUT_ELF_PLT_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/image.h"

/*
 * Names the stubs of the procedure linkage table. No table lists them, and their layout depends on linker and options
 * (.plt, .plt.sec, .plt.got; with endbr64 or bti), so each stub's jump is decoded: the slot it jumps through has a
 * relocation, and that has the name.
 *
 * To add an architecture: a decoder and its relocation types in the table in plt.c.
 */

/*
 * Called for each stub [start, end); the name of the function it jumps to lives as long as the image. False stops. In a
 * file that changes, the name may have another end each time it is read: the end of the file at the latest.
 */
typedef bool (*plt_visit)(void *ctx, uint64_t start, uint64_t end, const char *name);

/* False when `visit` stopped it or memory is exhausted. */
bool plt_read(struct image *image, plt_visit visit, void *ctx);

#endif
