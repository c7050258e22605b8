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
	TOP_WHOLE,
	TOP_NONE,    /* the caller's sp is ours; the return address is in the link register, or at sp */
	TOP_RECORD,  /* frame pointer and return address are at sp, and nothing else */
	TOP_UNSAVED, /* as large as it will be, but the frame pointer, and a return address in a register, are not in it yet */
	TOP_UNKNOWN,
};

enum {
	TOP_MAX_WINDOW = 1024, /* a power of two */
	TOP_BEFORE = 16,       /* bytes of code that are looked at before the pc, */
	TOP_BEHIND = 64,       /* and behind it */
	TOP_MAX_POLL = 8,      /* instructions between the end of a frame and the return: is a safepoint wanted? */
};

/* A method, and of its code what is known. */
struct top_code {
	__u64 code_begin;
	__u64 code_end;
	__u64 pc;
	__u64 start; /* of what is known, */
	__u64 end;   /* and its end */
	__u32 frame_size;     /* in words */
	__u32 frame_complete; /* offset in its code from which on the frame is there */
	__u8 bytes[TOP_MAX_WINDOW];
};

/* What a prologue has done before the pc, and has still to do. */
struct top_scan {
	__u64 depth; /* bytes that it has taken from the stack */
	__u32 is_saved;
	__u32 is_made;
	__u32 is_to_come;
};

static inline bool top_is_prologue(const struct top_code *c)
{
	return c->pc - c->code_begin < c->frame_complete;
}

/* Which code has to be known to tell, in `start` and `end`. False when that would be too much. */
static inline bool top_choose_window(struct top_code *c)
{
	c->end = c->code_end - c->pc < TOP_BEHIND ? c->code_end : c->pc + TOP_BEHIND;
	c->start = top_is_prologue(c) || c->pc - c->code_begin < TOP_BEFORE ? c->code_begin : c->pc - TOP_BEFORE;
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

/* aarch64: instructions of four bytes; the prologue is followed from the start of the code. */

/* add or sub sp, sp, #imm: how many bytes; 0: it is not that. */
static inline __u64 top_immediate_of(__u32 insn, __u32 opcode)
{
	__u64 imm = insn >> 10 & 0xfff;

	return (insn & 0xff8003ff) == opcode ? imm << (insn >> 22 & 1 ? 12 : 0) : 0;
}

static inline __u64 top_sub_sp(__u32 insn)
{
	return top_immediate_of(insn, 0xd10003ff);
}

static inline __u64 top_add_sp(__u32 insn)
{
	return top_immediate_of(insn, 0x910003ff);
}

static inline bool top_is_sub_sp_register(__u32 insn)
{
	return (insn & 0xffe0ffff) == 0xcb2063ff; /* sub sp, sp, xN */
}

static inline bool top_is_add_sp_register(__u32 insn)
{
	return (insn & 0xffe0ffff) == 0x8b2063ff; /* add sp, sp, xN */
}

static inline bool top_is_store_record(__u32 insn)
{
	return (insn & 0xffc07fff) == 0xa9007bfd; /* stp x29, x30, [sp, #N] */
}

static inline bool top_is_push_record(__u32 insn)
{
	return insn == 0xa9bf7bfd; /* stp x29, x30, [sp, #-16]! */
}

static inline bool top_is_load_record(__u32 insn)
{
	return (insn & 0xffc07fff) == 0xa9407bfd; /* ldp x29, x30, [sp, #N] */
}

/*
 * Around a call into the virtual machine, in 8 and 11: stp xzr, xN, [sp, #-16]!, the call, and add sp, sp, #16. In between
 * the frame is larger than it is said to be.
 */
static inline bool top_is_leaving_aarch64(__u32 insn, __u32 before)
{
	return (insn == 0x910043ff && !top_is_load_record(before)) || (before & 0xffff83ff) == 0xa9bf03ff;
}

static inline bool top_is_pop_record(__u32 insn)
{
	return insn == 0xa8c17bfd; /* ldp x29, x30, [sp], #16 */
}

/* Looks at position i; false: that is the end. */
static inline bool top_scan_aarch64(const struct top_code *c, __u32 i, struct top_scan *s)
{
	__u64 at = c->code_begin + 4 * (__u64)i;
	__u32 insn;

	if (at >= c->pc)
		return false;
	insn = top_fetch(c, at, 4);
	if (top_is_push_record(insn))
		s->depth += 16;
	if (top_is_push_record(insn) || top_is_store_record(insn))
		s->is_saved = 1;
	s->depth += top_sub_sp(insn);
	if (top_is_sub_sp_register(insn))
		s->depth = 8 * (__u64)c->frame_size;
	return true;
}

static inline enum top_state top_prologue_aarch64(const struct top_code *c, const struct top_scan *s)
{
	if (!s->depth)
		return TOP_NONE;
	if (s->depth == 8 * (__u64)c->frame_size)
		return s->is_saved ? TOP_WHOLE : TOP_UNSAVED;
	return s->depth == 16 && s->is_saved ? TOP_RECORD : TOP_UNKNOWN;
}

/* What may come between the end of the frame and the return: all in code that leaves sp and the link register alone. */
static inline bool top_is_poll_aarch64(__u32 insn)
{
	return (insn & 0xffc003ff) == 0xf9400388 /* ldr x8, [x28, #N] */ ||
	       (insn & 0xffe0ffff) == 0xeb2063ff /* cmp sp, xN */ || (insn & 0xff00001f) == 0x54000008 /* b.hi */ ||
	       (insn & 0xfffffc1f) == 0xb940001f /* ldr wzr, [xN] */ || (insn & 0xffc0001f) == 0xb940001f /* ldr wzr, [xN, #N] */ ||
	       (insn & 0x9f00001f) == 0x90000008 /* adrp x8 */ || insn == 0xd503201f /* nop */;
}

static inline enum top_state top_epilogue_aarch64(const struct top_code *c)
{
	__u64 size = 8 * (__u64)c->frame_size;
	__u32 before = top_fetch(c, c->pc - 4, 4);

	if (top_is_pop_record(top_fetch(c, c->pc, 4)))
		return TOP_RECORD;
	if (top_is_leaving_aarch64(top_fetch(c, c->pc, 4), before))
		return TOP_UNKNOWN;
	if (top_is_pop_record(before) || (top_add_sp(before) == size && top_is_load_record(top_fetch(c, c->pc - 8, 4))))
		return TOP_NONE;
	if (top_is_add_sp_register(before))
		return TOP_UNKNOWN;
	for (__u32 i = 0; i < TOP_MAX_POLL; i++) {
		__u32 insn = top_fetch(c, c->pc + 4 * i, 4);

		if (insn == 0xd65f03c0) /* ret */
			return TOP_NONE;
		if (!top_is_poll_aarch64(insn))
			break;
	}
	return TOP_WHOLE;
}

/* x86_64: instructions are found by their bytes, and only those that a prologue or an epilogue has. */

/* The length of sub rsp, imm; 0: it is not that. */
static inline __u32 top_sub_rsp(const struct top_code *c, __u64 at)
{
	__u32 code = top_fetch(c, at, 3);

	return code == 0xec8348 ? 4 : code == 0xec8148 ? 7 : 0;
}

static inline __u32 top_store_rbp(const struct top_code *c, __u64 at)
{
	__u32 code = top_fetch(c, at, 4);

	return code == 0x246c8948 ? 5 : code == 0x24ac8948 ? 8 : 0;
}

static inline bool top_follows_sub_rsp(const struct top_code *c, __u64 at)
{
	return top_sub_rsp(c, at - 4) == 4 || top_sub_rsp(c, at - 7) == 7;
}

/* The length of mov rbp, rsp in either encoding; 0: it is not that. */
static inline __u32 top_move_rsp(const struct top_code *c, __u64 at)
{
	__u32 code = top_fetch(c, at, 3);

	return code == 0xec8b48 || code == 0xe58948 ? 3 : 0;
}

/* sub rsp, also behind mov rbp, rsp: where frame pointers are kept, and in stubs. */
static inline bool top_makes_frame(const struct top_code *c, __u64 at)
{
	return top_sub_rsp(c, at + top_move_rsp(c, at));
}

static inline bool top_is_push_rbp(const struct top_code *c, __u64 at)
{
	return top_fetch(c, at, 1) == 0x55;
}

/* push rbp is just before the pc, or there is only mov rbp, rsp between. */
static inline bool top_follows_push(const struct top_code *c)
{
	return top_is_push_rbp(c, c->pc - 1) || (top_move_rsp(c, c->pc - 3) && top_is_push_rbp(c, c->pc - 4));
}

static inline bool top_scan_x86_64(const struct top_code *c, __u32 i, struct top_scan *s)
{
	__u64 at = c->code_begin + i;
	__u32 sub;

	if (i >= c->frame_complete || at >= c->end)
		return false;
	sub = top_sub_rsp(c, at);
	if (at < c->pc)
		s->is_made |= sub && at + sub <= c->pc;
	else
		s->is_to_come |= (top_is_push_rbp(c, at) && top_makes_frame(c, at + 1)) || (sub && top_store_rbp(c, at + sub));
	return true;
}

/* A frame is whole only behind what makes it. Any other prologue is not known. */
static inline enum top_state top_prologue_x86_64(const struct top_code *c, const struct top_scan *s)
{
	if (top_follows_push(c) && top_makes_frame(c, c->pc))
		return TOP_RECORD;
	if (top_store_rbp(c, c->pc) && top_follows_sub_rsp(c, c->pc))
		return TOP_UNSAVED;
	if (s->is_to_come)
		return TOP_NONE;
	return s->is_made ? TOP_WHOLE : TOP_UNKNOWN;
}

/* The length of an instruction of the poll before a return; 0: it is none. */
static inline __u32 top_poll_x86_64(const struct top_code *c, __u64 at)
{
	__u32 one = top_fetch(c, at, 1), two = top_fetch(c, at, 2), three = top_fetch(c, at, 3);

	return three == 0x673b49   ? 4 /* cmp rsp, [r15 + d8] */
	       : three == 0xa73b49 ? 7
	       : two == 0x870f     ? 6 /* ja */
	       : one == 0x77       ? 2
	       : three == 0x578b4d ? 4 /* mov r10, [r15 + d8] */
	       : three == 0x978b4d ? 7
	       : three == 0x028541 ? 3 /* test [r10], eax */
	       : two == 0x0585     ? 6 /* test eax, [rip + d32] */
	       : three == 0x77f8c5 ? 3 /* vzeroupper */
				   : 0;
}

static inline enum top_state top_epilogue_x86_64(const struct top_code *c)
{
	__u64 at = c->pc;
	bool pops = top_fetch(c, at, 1) == 0x5d;

	at += pops;
	for (__u32 i = 0; i < TOP_MAX_POLL; i++) {
		__u32 len = top_poll_x86_64(c, at);

		if (top_fetch(c, at, 1) == 0xc3)
			return pops ? TOP_RECORD : TOP_NONE;
		if (!len)
			break;
		at += len;
	}
	return TOP_WHOLE;
}

#endif
