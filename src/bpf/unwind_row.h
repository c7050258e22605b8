/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_UNWIND_ROW_H
#define STAKEOUT_BPF_UNWIND_ROW_H

/*
 * Call frame information, and Go's tables, as BPF searches them: one row for each stretch of code with the same rules, by rising address.
 * It holds only what real compilers write: the CFA from the stack or frame pointer, return address and frame pointer
 * saved at the CFA or still in their registers, or the return address in rdi, where the C library's vfork() on x86_64
 * keeps it. Anything else is a row that says so. Shared by the BPF program and its loader.
 */

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#endif

/* How the caller is found from code of the row. */
enum unwind_kind {
	UNWIND_NONE = 0,	/* no CFI here: by frame pointer, marked */
	UNWIND_FROM_SP = 1,	/* cfa = sp + 8 * cfa */
	UNWIND_FROM_FP = 2,	/* cfa = fp + 8 * cfa */
	UNWIND_PLT = 3,		/* x86_64 stubs: cfa = sp + 8 + ((pc & 15) >= cfa ? 8 : 0) */
	UNWIND_SIGNAL = 4,	/* the trampoline of a signal handler: the interrupted registers are at sp */
	UNWIND_END = 5,		/* the outermost frame: it has no caller */
	UNWIND_UNSUPPORTED = 6, /* rules that do not fit in here */

	/* x86_64's, where the return address is always at cfa - 8: `ra` is a second number, UNWIND_RA_AT_CFA is not set */
	UNWIND_FAR_FROM_SP = 7, /* frames over 256 KiB: cfa = sp + 8 * (ra << 16 | (__u16)cfa) */
	UNWIND_AT_SP = 8,	/* a frame that was aligned anew: cfa = *(sp + 8 * cfa) + 8 * ra */
	UNWIND_AT_FP = 9,	/* likewise: cfa = *(fp + 8 * cfa) + 8 * ra */

	/*
	 * Functions of Go's runtime that may have changed from a goroutine's stack to the thread's (go_layout.h): with the sp
	 * that they had on the goroutine's they are as UNWIND_FROM_SP.
	 */
	UNWIND_GO_FRAME = 11,	  /* by fp, which points at cfa + 8 * fp */
	UNWIND_GO_SYSTEM = 12,	  /* the goroutine has the sp */
	UNWIND_GO_C = 13,	  /* it is kept above the frame of the C function that was called */
	UNWIND_GO_MORESTACK = 14, /* the goroutine has sp and pc of the caller */
	UNWIND_GO_CALLBACK = 15,  /* the other way round: C, which is on the thread's stack, has called Go */

	UNWIND_NO_TABLE = 10, /* never in a table: code in no file, or in one without CFI: by frame pointer, marked */
};

enum unwind_flag {
	UNWIND_FP_AT_CFA = 1 << 0, /* the caller's frame pointer is at cfa + 8 * fp; else it is unchanged */
	UNWIND_FP_LOST = 1 << 1,   /* it is not known */
	UNWIND_RA_AT_CFA = 1 << 2, /* the return address is at cfa + 8 * ra; else in the link register, or rdi */
	UNWIND_FP_AT_FP = 1 << 3,  /* the caller's frame pointer is at the address in this frame's */
	UNWIND_RESUMES = 1 << 4, /* of UNWIND_END: pc does not follow a call, and is the start of the outermost function */
};

struct unwind_row {
	__u32 pc; /* from the object's first row table address (see offcpu_mapping.bias) */
	__u8 kind;
	__u8 flags;
	__s16 cfa;
	__s16 fp;
	__s16 ra;
};

static_assert(sizeof(struct unwind_row) == 12, "unwind_row has no hidden padding");

#endif
