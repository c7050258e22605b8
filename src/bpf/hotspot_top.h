/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_HOTSPOT_TOP_H
#define STAKEOUT_BPF_HOTSPOT_TOP_H

/*
 * How much of its frame a compiled method of HotSpot has where a thread was interrupted in it: it may be building or leaving
 * it. Its code tells. BPF and snapshots both ask: whoever does looks at each position of a prologue (top_scan_*), in a loop
 * of its own kind, and then asks for the answer.
 */

#ifndef __bpf__
#include <linux/types.h>
#include <stdbool.h>
#endif

enum top_state {
	TOP_WHOLE,   /* and below it, what was saved for a call: top_scan.below */
	TOP_NONE,    /* the caller's sp is ours; the return address is in the link register, or at sp */
	TOP_RECORD,  /* frame pointer and return address are at sp, and nothing else */
	TOP_UNSAVED, /* as large as it will be, but the frame pointer, and a return address in a register, are not in it yet */
	TOP_AT_FP,   /* the frame pointer is that of the frame, unless that returns to the method itself */
	TOP_UNKNOWN,
};

enum {
	TOP_MAX_WINDOW = 1024, /* a power of two */
	TOP_BEFORE = 64,       /* bytes of code that are looked at before the pc, */
	TOP_BEHIND = 256,      /* and behind it */
	TOP_MAX_POLL = 8,      /* instructions between the end of a frame and the return: is a safepoint wanted? */
};

/* A method, and of its code what is known. */
struct top_code {
	__u64 code_begin;
	__u64 code_end;
	__u64 pc;
	__u64 start; /* of what is known, */
	__u64 end;   /* and its end */
	__u64 link;  /* the link register; 0: it is not known */
	__u32 frame_size;     /* in words */
	__u32 frame_complete; /* offset in its code from which on the frame is there */
	__u32 keeps_fp; /* a frame pointer, from there on: the wrapper of a native method does, and many a stub */
	__u32 is_stub;  /* the size is that of its frame around a call, and where it is complete is to be found out */
	__u8 bytes[TOP_MAX_WINDOW];
};

/* Where the code behind the pc goes, as far as it goes straight. */
enum top_end {
	TOP_END_CUT,     /* that is not known */
	TOP_END_RETURN,
	TOP_END_LEAVE,   /* jumps to elsewhere */
	TOP_END_JUMP,    /* jumps to other code of the method, where the frame is whole */
	TOP_END_RESTORE, /* takes the stack pointer from the frame pointer */
	TOP_END_LOST,    /* computes the stack pointer */
};

/* What a prologue has done before the pc, and has still to do; and other code. */
struct top_scan {
	__u64 depth; /* bytes that it has taken from the stack */
	__u32 is_saved;
	__u32 is_made;
	__u32 is_to_come;
	__u32 is_removed; /* the frame was taken off, and nothing was put there since */
	__u32 is_pushed;  /* a record was */
	__u32 is_polling; /* on the way to the virtual machine, as a safepoint is wanted */
	__u32 zero;
	/* From the pc on: */
	__u32 end; /* enum top_end */
	__s64 taken; /* bytes that were taken off the stack, */
	__s64 most;  /* and how many that ever were */
	__u32 is_loaded; /* frame pointer and return address were */
	__u32 calls;
	__u64 below; /* the answer is TOP_WHOLE: bytes below the frame */
};

static inline bool top_is_prologue(const struct top_code *c)
{
	return c->pc - c->code_begin < c->frame_complete;
}

/* Which code has to be known to tell, in `start` and `end`. False when that would be too much. */
static inline bool top_choose_window(struct top_code *c)
{
	c->end = c->code_end - c->pc < TOP_BEHIND ? c->code_end : c->pc + TOP_BEHIND;
	c->start = top_is_prologue(c) || c->is_stub || c->pc - c->code_begin < TOP_BEFORE ? c->code_begin : c->pc - TOP_BEFORE;
	return c->end - c->start <= TOP_MAX_WINDOW;
}

/* n bytes of code, at most four; 0: they are not known. */
static inline __u32 top_fetch(const struct top_code *c, __u64 at, __u32 n)
{
	__u64 offset = at - c->start;
	__u32 value = 0;

	if (at < c->start || at > c->end || c->end - at < n)
		return 0;
	for (__u32 i = 0; i < n; i++)
		value |= (__u32)c->bytes[(offset + i) & (TOP_MAX_WINDOW - 1)] << 8 * i;
	return value;
}

#include "bpf/hotspot_top_aarch64.h"
#include "bpf/hotspot_top_x86_64.h"

#endif
