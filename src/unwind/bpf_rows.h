/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_BPF_ROWS_H
#define STAKEOUT_UNWIND_BPF_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/err.h"
#include "base/vec.h"
#include "bpf/unwind_row.h"
#include "elf/image.h"

/* 48 MiB. libLLVM, one of the largest files around, has a million. */
enum { BPF_ROWS_MAX = 4 << 20 };

/*
 * The CFI of one file as the table that BPF searches: rows by rising pc, each up to the pc of the next, the first at 0
 * and the last one without CFI. Like the snapshot's unwinder it uses .eh_frame, where that says nothing Go's own tables,
 * and then .debug_frame.
 */
struct bpf_rows {
	VEC_FIELDS(struct unwind_row);
	uint64_t base; /* the file address that the rows' pcs count from: where its code begins */
	bool cut;      /* code from the last row's pc on would need more than BPF_ROWS_MAX, or lies 4 GiB from base */
};

/* Fails for a file of another architecture (-ENOEXEC), one without code (-ENOENT), and with -ENOMEM. */
int bpf_rows_build(struct image *image, const struct arch *arch, struct err *err, struct bpf_rows *out);
void bpf_rows_deinit(struct bpf_rows *rows);

#endif
