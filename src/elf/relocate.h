/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_RELOCATE_H
#define STAKEOUT_ELF_RELOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * ELF objects that a JIT compiler made: their section headers say where the compiler has put the sections (sh_addr),
 * but most are ET_REL, so symbols are relative to their sections, and the debug info still has to be relocated. Only
 * 64-bit little-endian objects for x86_64 and aarch64 are accepted.
 */

/* Called with [start, end) of each section of code that has an address. False stops. */
typedef bool (*relocate_visit)(void *ctx, uint64_t start, uint64_t end);

/* False when `visit` stopped it. */
bool relocate_visit_code(const uint8_t *data, size_t len, relocate_visit visit, void *ctx);

/*
 * Changes the object in place so that every address in it is one of the target: symbols, .eh_frame, .debug_frame and
 * the other debug sections. A relocation that makes no sense is left out. Afterwards it can be opened with
 * image_open_memory(). It has sections only: program headers, which would point to the wrong bytes, are removed, and so
 * are the build-id, links to debug files, and compressed sections.
 */
int relocate_object(uint8_t *data, size_t len, struct err *err);

#endif
