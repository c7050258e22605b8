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

static inline bool top_is_pop_record(__u32 insn)
{
	return insn == 0xa8c17bfd; /* ldp x29, x30, [sp], #16 */
}

static inline bool top_is_set_fp(__u32 insn)
{
	return insn == 0x910003fd; /* mov x29, sp */
}

/* What a stub begins with tells how its frame is made: with a frame pointer, or as that of a method. False: neither. */
static inline bool top_know_stub_aarch64(struct top_code *c)
{
	const __u64 at = c->code_begin;

	c->keeps_fp = top_is_push_record(top_fetch(c, at, 4)) && top_is_set_fp(top_fetch(c, at + 4, 4));
	c->frame_complete = c->keeps_fp                                  ? 8
			    : top_is_store_record(top_fetch(c, at + 4, 4)) ? 8
			    : top_is_store_record(top_fetch(c, at + 8, 4)) ? 12
									   : 0;
	return c->frame_complete;
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

static inline __u32 top_bits(__u32 insn, __u32 low, __u32 n)
{
	return insn >> low & ((1u << n) - 1);
}

static inline __s64 top_signed_bits(__u32 insn, __u32 low, __u32 n)
{
	__s64 value = top_bits(insn, low, n);

	return value - (value >> (n - 1) << n);
}

static inline bool top_is_on_stack(__u32 insn)
{
	return top_bits(insn, 5, 5) == 31;
}

/* How far loads and stores move sp, which is their base, up: pairs of registers, one, and vectors. */
static inline __s64 top_access_moves_sp(__u32 insn)
{
	__u32 count = top_bits(insn, 12, 4);

	if (!top_is_on_stack(insn))
		return 0;
	if ((insn & 0x3a800000) == 0x28800000)
		return top_signed_bits(insn, 15, 7) *
		       (top_bits(insn, 26, 1) ? 4 << top_bits(insn, 30, 2) : top_bits(insn, 31, 1) ? 8 : 4);
	if ((insn & 0x3b200400) == 0x38000400)
		return top_signed_bits(insn, 12, 9);
	if ((insn & 0xbfbf0000) == 0x0c9f0000)
		return (count == 7 ? 1 : count == 8 || count == 10 ? 2 : count == 4 || count == 6 ? 3 : 4) *
		       (top_bits(insn, 30, 1) ? 16 : 8);
	return 0;
}

static inline __s64 top_moves_sp(__u32 insn)
{
	return (__s64)top_add_sp(insn) - (__s64)top_sub_sp(insn) + top_access_moves_sp(insn);
}

/* sp is set in any other way. */
static inline bool top_computes_sp(__u32 insn)
{
	return (insn & 0xbfe0001f) == 0x8b20001f                                          /* add or sub sp, x, y */
	       || ((insn & 0x9f80001f) == 0x9200001f && top_bits(insn, 29, 2) != 3)       /* and, orr, eor sp, x, #N */
	       || ((insn & 0xbf80001f) == 0x9100001f && !top_is_on_stack(insn))           /* add or sub sp, x, #N */
	       || ((insn & 0xbfa00000) == 0x0c800000 && top_is_on_stack(insn) && top_bits(insn, 16, 5) != 31) /* st1, [sp], x */
	       || (insn & 0xffa0f01f) == 0x0420501f;                                      /* addvl, addpl sp */
}

static inline bool top_is_return(__u32 insn)
{
	return insn == 0xd65f03c0;
}

static inline bool top_is_call(__u32 insn)
{
	return (insn & 0xfc000000) == 0x94000000 || (insn & 0xfffffc1f) == 0xd63f0000; /* bl, blr */
}

static inline bool top_is_jump(__u32 insn)
{
	return (insn & 0xfc000000) == 0x14000000 || (insn & 0xfffffc1f) == 0xd61f0000; /* b, br */
}

static inline bool top_is_trap(__u32 insn)
{
	return (insn & 0xffe0001f) == 0xd4200000 || (insn & 0xffff0000) == 0; /* brk, udf */
}

static inline bool top_is_restore(__u32 insn)
{
	return insn == 0x910003bf; /* mov sp, x29 */
}

static inline bool top_jumps_inside(const struct top_code *c, __u64 at, __u32 insn)
{
	__u64 target = at + 4 * (__u64)top_signed_bits(insn, 0, 26);

	return (insn & 0xfc000000) == 0x14000000 && target >= c->code_begin && target < c->code_end;
}

/* A safepoint is wanted: the virtual machine is told where that was, and then jumped to. adr x8; str x8, [x28, #N] */
static inline bool top_is_poll_aarch64(const struct top_code *c, __u64 at)
{
	return (top_fetch(c, at, 4) & 0x9f00001f) == 0x10000008 && (top_fetch(c, at + 4, 4) & 0xffc003ff) == 0xf9000388;
}

/*
 * Looks at the i-th instruction before the pc, as long as these lead here, and leave sp alone; false: that is the end. Behind
 * the end of a frame there is a look whether a safepoint is wanted, and more; all that leads there has no frame either.
 */
static inline bool top_look_back_aarch64(const struct top_code *c, __u32 i, struct top_scan *s)
{
	__u64 at = c->pc - 4 - 4 * (__u64)i;
	__u32 insn = top_fetch(c, at, 4);

	if (!insn || top_is_return(insn) || top_is_call(insn) || top_is_jump(insn) || top_is_trap(insn))
		return false;
	if (top_is_pop_record(insn) || (top_add_sp(insn) == 8 * (__u64)c->frame_size && top_is_load_record(top_fetch(c, at - 4, 4))))
		s->is_removed = 1;
	else if (top_is_push_record(insn))
		s->is_pushed = 1;
	else if (top_is_poll_aarch64(c, at))
		s->is_polling = 1;
	return !s->is_removed && !s->is_pushed && !top_moves_sp(insn) && !top_computes_sp(insn) && !top_is_restore(insn);
}

static inline bool top_ends_aarch64(const struct top_code *c, __u64 at, __u32 insn, struct top_scan *s)
{
	if (!insn || top_is_trap(insn))
		s->end = TOP_END_CUT;
	else if (top_is_return(insn))
		s->end = TOP_END_RETURN;
	else if (top_is_jump(insn))
		s->end = top_jumps_inside(c, at, insn) ? TOP_END_JUMP : TOP_END_LEAVE;
	else if (top_is_restore(insn))
		s->end = TOP_END_RESTORE;
	else if (top_computes_sp(insn) && !top_is_add_sp_register(insn))
		s->end = TOP_END_LOST;
	else
		return false;
	return true;
}

/*
 * Follows the code from the pc on; false: that is the end. Branches are not taken: on either side there is as much on the stack.
 * A call may be one that never comes back: what is behind it is then other code, which begins with a frame, or without one.
 */
static inline bool top_follow_aarch64(const struct top_code *c, __u32 i, struct top_scan *s)
{
	__u64 at = c->pc + 4 * (__u64)i;
	__u32 insn = top_fetch(c, at, 4);

	if (top_ends_aarch64(c, at, insn, s))
		return false;
	s->calls |= top_is_call(insn);
	s->is_loaded |= top_is_load_record(insn) || top_is_pop_record(insn);
	/* a frame too large for one instruction; the record comes behind */
	s->taken += top_is_add_sp_register(insn) ? 8 * (__s64)c->frame_size - 16 : top_moves_sp(insn);
	if (s->most < s->taken)
		s->most = s->taken;
	return true;
}

/*
 * Jumps to elsewhere lead from methods without a frame to the virtual machine; and from those with one to handlers and to stubs,
 * or only through a register. A wrapper forwards exceptions so; if it still has its frame, the link register leads into it.
 */
static inline enum top_state top_leaving_aarch64(const struct top_code *c, const struct top_scan *s)
{
	if (s->is_polling || top_is_poll_aarch64(c, c->pc))
		return TOP_NONE;
	return c->keeps_fp && c->link && (c->link < c->code_begin || c->link >= c->code_end) ? TOP_NONE : TOP_WHOLE;
}

static inline enum top_state top_returning_aarch64(const struct top_code *c, struct top_scan *s)
{
	const __s64 size = 8 * (__s64)c->frame_size;

	if (s->taken >= size && (s->is_loaded || s->taken == size)) {
		s->below = (__u64)(s->taken - size);
		return TOP_WHOLE;
	}
	if (s->taken == 16 && s->is_loaded && !s->calls)
		return TOP_RECORD;
	if (s->taken || s->is_loaded)
		return TOP_UNKNOWN;
	if (s->calls)
		return TOP_WHOLE;
	return s->end == TOP_END_RETURN ? TOP_NONE : top_leaving_aarch64(c, s);
}

static inline enum top_state top_body_aarch64(const struct top_code *c, struct top_scan *s)
{
	const bool is_off = s->is_loaded && s->taken == 8 * (__s64)c->frame_size; /* what comes behind that is not needed */

	if (s->end == TOP_END_RETURN || s->end == TOP_END_LEAVE || (s->end == TOP_END_CUT && is_off))
		return top_returning_aarch64(c, s);
	if (s->end == TOP_END_RESTORE || s->end == TOP_END_LOST || s->taken < 0 || (s->end == TOP_END_CUT && s->most))
		return TOP_UNKNOWN;
	s->below = (__u64)s->taken;
	return TOP_WHOLE;
}

/*
 * What keeps a frame pointer has it until it restores its caller's; a wrapper may make a second frame on the way, and so may a
 * method, for a call to the virtual machine.
 */
static inline enum top_state top_epilogue_aarch64(const struct top_code *c, struct top_scan *s)
{
	enum top_state state;

	if (s->is_removed && (!c->keeps_fp || c->is_stub))
		return TOP_NONE;
	if (s->is_pushed && !c->keeps_fp)
		return TOP_UNKNOWN;
	state = top_body_aarch64(c, s);
	return c->keeps_fp && state != TOP_NONE && state != TOP_RECORD ? TOP_AT_FP : state;
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

static inline bool top_know_stub_x86_64(struct top_code *c)
{
	const __u64 at = c->code_begin;
	const __u32 sub = top_sub_rsp(c, at);

	c->keeps_fp = top_is_push_rbp(c, at) && top_move_rsp(c, at + 1);
	c->frame_complete = c->keeps_fp ? 4 : sub && top_store_rbp(c, at + sub) ? sub + top_store_rbp(c, at + sub) : 0;
	return c->frame_complete;
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
		s->is_to_come |= (top_is_push_rbp(c, at) && (c->keeps_fp || top_makes_frame(c, at + 1))) || (sub && top_store_rbp(c, at + sub));
	return true;
}

/* A frame is whole only behind what makes it. Any other prologue is not known. */
static inline enum top_state top_prologue_x86_64(const struct top_code *c, const struct top_scan *s)
{
	if (top_follows_push(c) && (top_makes_frame(c, c->pc) || c->keeps_fp))
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
	       : three == 0x7f8349 ? 5 /* cmp [r15 + d8], i8: the wrapper of a native method looks for an exception */
	       : three == 0xbf8349 ? 8
	       : two == 0x850f     ? 6 /* jne */
	       : one == 0x75       ? 2
				   : 0;
}

/* mov [r15 + d32], r10 */
static inline bool top_tells_poll_x86_64(const struct top_code *c, __u64 at)
{
	return top_fetch(c, at, 3) == 0x97894d;
}

static inline bool top_is_jump_x86_64(const struct top_code *c, __u64 at)
{
	return top_fetch(c, at, 1) == 0xe9 || (top_fetch(c, at, 2) & 0xf8ff) == 0xe0ff || (top_fetch(c, at, 3) & 0xf8ffff) == 0xe0ff41; /* jmp */
}

/*
 * What leaves a method whose frame is gone other than by a return: a safepoint is wanted (lea r10, [rip + d32]; mov [r15 + d32], r10; jmp),
 * or an exception has come (pop rbp; jmp).
 */
static inline bool top_leaves_x86_64(const struct top_code *c)
{
	const __u64 pc = c->pc;

	if (top_fetch(c, pc, 3) == 0x158d4c)
		return top_tells_poll_x86_64(c, pc + 7) && top_is_jump_x86_64(c, pc + 14);
	if (top_tells_poll_x86_64(c, pc))
		return top_is_jump_x86_64(c, pc + 7) && top_fetch(c, pc - 7, 3) == 0x158d4c;
	return top_is_jump_x86_64(c, pc) && ((top_tells_poll_x86_64(c, pc - 7) && top_fetch(c, pc - 14, 3) == 0x158d4c) ||
					     (top_fetch(c, pc - 1, 1) == 0x5d && c->pc - c->code_begin > c->frame_complete));
}

static inline enum top_state top_epilogue_x86_64(const struct top_code *c)
{
	__u64 at = c->pc;
	bool pops = top_fetch(c, at, 1) == 0x5d;

	if (top_leaves_x86_64(c))
		return TOP_NONE;
	at += pops;
	if (pops && top_is_jump_x86_64(c, at))
		return TOP_RECORD;
	for (__u32 i = 0; i < TOP_MAX_POLL; i++) {
		__u32 len = top_poll_x86_64(c, at);

		if (top_fetch(c, at, 1) == 0xc3)
			return pops ? TOP_RECORD : TOP_NONE;
		if (!len)
			break;
		at += len;
	}
	return c->keeps_fp ? TOP_AT_FP : TOP_WHOLE;
}

#endif
