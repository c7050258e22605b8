/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_HOTSPOT_TOP_X86_64_H
#define STAKEOUT_BPF_HOTSPOT_TOP_X86_64_H

/* For bpf/hotspot_top.h. Instructions are found by their bytes, and only those that a prologue or an epilogue has. */

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
