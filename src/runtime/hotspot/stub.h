/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_STUB_H
#define STAKEOUT_RUNTIME_HOTSPOT_STUB_H

#include "arch/arch.h"
#include "bpf/runtime_layout.h"
#include "runtime/hotspot/code_cache.h"
#include "unwind/cfi.h"

/*
 * Routines that Java code calls to copy, fill, compare, compute: many in one blob, each with a frame of its own kind, or none,
 * and only their code tells which.
 */
bool stub_is_routine(const struct blob *blob);

/*
 * Follows the code of such a routine from the pc to its return: where its caller is. `is_exact`: the pc was interrupted, not
 * returned to. False when that cannot be told, or when not all of the code is known: then it is wanted.
 */
bool stub_read_row(struct code_cache *cache, const struct arch *arch, const struct blob *blob, uint64_t pc, bool is_exact,
		   struct cfi_row *out);

/* The same for each address of a block of code where a routine may be interrupted, as BPF wants it. */
void stub_fill_rows(struct code_cache *cache, const struct arch *arch, const struct blob *blob, uint64_t address,
		    struct offcpu_stub_rows *out);

#endif
