/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_RECORD_H
#define STAKEOUT_UNWIND_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "unwind/cfi.h"

/* The records of .eh_frame and .debug_frame as they are stored: CIEs (what FDEs share) and FDEs (one per function). */

enum { PE_OMIT = 0xff };

struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint32_t ra_reg;
	uint8_t pointer_encoding; /* of the FDE's addresses (DW_EH_PE_*) */
	bool has_augmentation_data;
	bool signal_frame;
	struct cursor program;
};

struct fde {
	struct cie cie;
	uint64_t start; /* file addresses */
	uint64_t end;
	struct cursor program;
};

/*
 * Reads a value encoded as DW_EH_PE_*; pointers have `word` bytes. `address` is the file address of c->start, for the pc-relative ones; `base`
 * that of the data-relative ones. False, leaving c->bad set, for encodings that cannot be resolved from the file.
 */
bool record_read_pointer(struct cursor *c, unsigned word, uint8_t encoding, uint64_t address, uint64_t base, uint64_t *out);

/*
 * Reads the record at *offset and moves *offset past it. 1: an FDE; 0: a CIE, or a damaged or empty FDE, to be skipped;
 * -ENOENT: the section's end.
 */
int record_next(const struct cfi_section *section, uint64_t *offset, struct fde *out);

#endif
