/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_HOTSPOT_TOP_AARCH64_H
#define STAKEOUT_BPF_HOTSPOT_TOP_AARCH64_H

/* For bpf/hotspot_top.h. Instructions of four bytes; the prologue is followed from the start of the code. */

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

#endif
