/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_RELOCATE_H
#define STAKEOUT_ELF_RELOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * ELF objects that a JIT compiler made: its sections' headers say where it has put them (sh_addr), but most such
 * objects are ET_REL, so that their symbols count from their sections and their debug info is still to be relocated.
 * Only 64-bit little-endian objects for x86_64 and aarch64 are taken.
 */

/* Called with [start, end) of each section of code that has been put somewhere. False stops. */
typedef bool (*relocate_visit)(void *ctx, uint64_t start, uint64_t end);

/* False when `visit` stopped it. */
bool relocate_visit_code(const uint8_t *data, size_t len, relocate_visit visit, void *ctx);

/*
 * Changes the object in place so that every address in it is one of the target: symbols, .eh_frame, .debug_frame and
 * the other debug sections. A relocation that makes no sense is left out. It can be opened with image_open_memory()
 * then: sections only, since program headers, which would lead to bytes that are not where they say, are taken out; so
 * are the build-id, links to debug files, and sections that are compressed.
 */
int relocate_object(uint8_t *data, size_t len, struct err *err);

#endif
