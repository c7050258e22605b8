/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_CODEINFO_H
#define STAKEOUT_UNWIND_CODEINFO_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "target/modules.h"
#include "unwind/cfi.h"
#include "unwind/go_rows.h"

/*
 * What a module says about an address of its code, cached in the module: thousands of threads stand at the same few
 * addresses.
 */

enum code_kind {
	CODE_UNKNOWN,   /* nothing is said */
	CODE_CFI,       /* `row` is the compiler's */
	CODE_EHABI,     /* `row` is from exception tables, which are sure for calls alone */
	CODE_GO,        /* `row` is from Go's tables, and `go` says what it is good for */
	CODE_READ,      /* `row` was made by reading the instructions up to the function's return */
	CODE_SIGRETURN, /* the trampoline that a signal handler returns to */
	CODE_START,     /* the start of a function that nothing has called, as makecontext() has it returned to */
};

struct code_info {
	enum code_kind kind;
	enum go_row_kind go; /* of CODE_GO */
	struct cfi_row row;
};

/*
 * `vaddr` is the pc in the file's own terms; unless `exact`, it is a return address: what matters then is the call
 * before it. The result lives until the next call for the same module. When the budget (may be NULL) does not suffice,
 * the answer is CODE_UNKNOWN for now.
 */
const struct code_info *code_info_find(struct module *module, const struct arch *arch, struct budget *budget,
				       uint64_t vaddr, bool exact);

/* True when the image holds code of the architecture, as the decoder reads it. */
bool code_is_walkable(const struct image *image, const struct arch *arch);

/* Opens the CFI of an image; without bytes when it has none. For cfi_section_deinit(), before the image is gone. */
void code_open_eh_frame(struct cfi_section *section, const struct arch *arch, struct image *image);
void code_open_debug_frame(struct cfi_section *section, const struct arch *arch, struct image *image);

#endif
