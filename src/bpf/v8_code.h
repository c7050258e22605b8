/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_V8_CODE_H
#define STAKEOUT_BPF_V8_CODE_H

/*
 * Code that V8 makes keeps a frame pointer, but for its first and its last instructions. There the frame pointer is still,
 * or again, the caller's, and following it would leave that out. The instructions tell. Shared by the BPF program and the
 * snapshot's unwinder.
 */

#ifndef __bpf__
#include <linux/types.h>
#include <stdbool.h>
#endif

enum v8_frame_state {
	V8_FRAME_WHOLE,
	V8_FRAME_NONE,    /* the return address is where the call left it: in a register, or on the top of the stack */
	V8_FRAME_PUSHED,  /* so are both, but the frame pointer is not set yet */
	V8_FRAME_SCRATCH, /* x86_64: the return address is in r10, from which it goes back on the stack */
};

enum { V8_CODE_BEFORE = 16, V8_CODE_BEHIND = 32, V8_PROLOGUE = 16 };

enum {
	V8_STP_FP_LR = 0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
	V8_MOV_FP_SP = 0x910003fd,
	V8_LDP_FP_LR = 0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
	V8_RET = 0xd65f03c0,
};

/* So many bytes of it, at most 8, as a number; some value that no code is when there are less. */
static inline __attribute__((always_inline)) __u64 v8_code_at(const __u8 *code, __u32 len, __u32 at, __u32 n)
{
	__u64 number = 0;

	if (at + n > len)
		return ~0ull;
	for (__u32 i = 0; i < n; i++)
		number |= (__u64)code[at + i] << (8 * i);
	return number;
}

/* A call, or a jump that is always taken: what follows is not executed next. */
static inline bool v8_leaves(__u32 insn)
{
	return (insn & 0x7c000000) == 0x14000000 || (insn & 0xffdffc1f) == 0xd61f0000 || !(insn & 0xffff0000);
}

/*
 * By the code before and from where execution stands; `len` bytes of it are there, at least V8_CODE_BEFORE. A function begins
 * with a check of whether it is still good, which ends in a jump, and with what makes its frame; it ends with what drops its
 * frame and arguments, and returns.
 */
static inline __attribute__((always_inline)) enum v8_frame_state v8_state_aarch64(const __u8 *code, __u32 len)
{
	bool jumped = false;

	if ((__u32)v8_code_at(code, len, V8_CODE_BEFORE - 4, 4) == V8_STP_FP_LR && (__u32)v8_code_at(code, len, V8_CODE_BEFORE, 4) == V8_MOV_FP_SP)
		return V8_FRAME_PUSHED;
	for (__u32 at = V8_CODE_BEFORE; at < V8_CODE_BEFORE + V8_CODE_BEHIND && at + 4 <= len; at += 4) {
		__u32 insn = (__u32)v8_code_at(code, len, at, 4);

		if (insn == V8_STP_FP_LR)
			return V8_FRAME_NONE;
		if (insn == V8_LDP_FP_LR)
			return V8_FRAME_WHOLE;
		if (insn == V8_RET)
			return jumped ? V8_FRAME_WHOLE : V8_FRAME_NONE;
		if (v8_leaves(insn) && ((insn & 0xfffffc1f) != 0xd61f0000 || jumped)) /* but for one br */
			return V8_FRAME_WHOLE;
		jumped |= v8_leaves(insn);
	}
	return V8_FRAME_WHOLE;
}

/* jg; ret imm */
static inline __attribute__((always_inline)) bool v8_is_return(const __u8 *code, __u32 len, __u32 at)
{
	__u64 first = v8_code_at(code, len, at, 1);

	return first == 0xc2 || first == 0xc3 || (first == 0x7f && v8_code_at(code, len, at + 2, 1) == 0xc2);
}

/* The same after a cmp rcx, imm: when the frame is gone, the number of arguments decides how they are dropped. */
static inline __attribute__((always_inline)) bool v8_ends(const __u8 *code, __u32 len, __u32 at)
{
	__u64 first = v8_code_at(code, len, at, 3);

	return v8_is_return(code, len, at) || (first == 0xf98348 && v8_is_return(code, len, at + 4)) ||
	       (first == 0xf98148 && v8_is_return(code, len, at + 7));
}

/*
 * Baseline code has a builtin make its frame: movabs r12, imm64; call, or call [r13+disp32] where the heap may not grow to 2 GiB
 * (--max-old-space-size, or little memory); before that mov ebx, imm32, or xor ebx, ebx where the function has no registers.
 */
enum { V8_BASELINE_MOV = 5, V8_BASELINE_XOR = 2, V8_BASELINE_MOVABS = 10 };

static inline __attribute__((always_inline)) bool v8_calls_prologue(const __u8 *code, __u32 len, __u32 at)
{
	const __u32 call = at + V8_BASELINE_MOVABS;

	return v8_code_at(code, len, at, 2) == 0xbc49 &&
	       (v8_code_at(code, len, call, 1) == 0xe8 || v8_code_at(code, len, call, 3) == 0x95ff41);
}

static inline __attribute__((always_inline)) bool v8_begins_with_mov(const __u8 *code, __u32 len, __u32 at)
{
	return v8_code_at(code, len, at, 1) == 0xbb && v8_calls_prologue(code, len, at + V8_BASELINE_MOV);
}

static inline __attribute__((always_inline)) bool v8_begins_with_xor(const __u8 *code, __u32 len, __u32 at)
{
	return v8_code_at(code, len, at, 2) == 0xdb33 && v8_calls_prologue(code, len, at + V8_BASELINE_XOR);
}

/* Execution stands at one of these. */
static inline __attribute__((always_inline)) bool v8_is_baseline_start(const __u8 *code, __u32 len)
{
	const __u32 at = V8_CODE_BEFORE;

	return v8_begins_with_mov(code, len, at) || v8_begins_with_xor(code, len, at) ||
	       v8_begins_with_mov(code, len, at - V8_BASELINE_MOV) || v8_begins_with_xor(code, len, at - V8_BASELINE_XOR) ||
	       v8_begins_with_mov(code, len, at - V8_BASELINE_MOV - V8_BASELINE_MOVABS) ||
	       v8_begins_with_xor(code, len, at - V8_BASELINE_XOR - V8_BASELINE_MOVABS);
}

static inline __attribute__((always_inline)) enum v8_frame_state v8_state_x86_64(const __u8 *code, __u32 len)
{
	/* mov rbp, rsp; push rbp before it; pop r10; lea rsp, [rsp+rcx*8]; push r10; ret */
	const __u64 mov = 0xe58948, push_mov = 0xe5894855, pop_lea_push = 0x5241cc248d485a41, lea_push_ret = 0xc35241cc248d48,
		    push_ret = 0xc35241;

	if (v8_code_at(code, len, V8_CODE_BEFORE, 3) == mov && code[V8_CODE_BEFORE - 1] == 0x55)
		return V8_FRAME_PUSHED;
	if (v8_is_baseline_start(code, len))
		return V8_FRAME_NONE;
	if (v8_ends(code, len, V8_CODE_BEFORE) || (v8_code_at(code, len, V8_CODE_BEFORE, 8) == pop_lea_push &&
						   v8_code_at(code, len, V8_CODE_BEFORE + 8, 1) == 0xc3))
		return V8_FRAME_NONE;
	if (v8_code_at(code, len, V8_CODE_BEFORE, 7) == lea_push_ret || v8_code_at(code, len, V8_CODE_BEFORE, 3) == push_ret)
		return V8_FRAME_SCRATCH;
	/* No other function begins so close behind one's code. */
	for (__u32 at = V8_CODE_BEFORE; at < V8_CODE_BEFORE + V8_CODE_BEHIND && at + 4 <= len; at++)
		if (v8_code_at(code, len, at, 4) == push_mov)
			return V8_FRAME_NONE;
	return V8_FRAME_WHOLE;
}

/*
 * Whether the code before has just set the frame pointer, and what belongs into the frame may not be there yet. x86_64 pushes
 * one after the other, so that sp tells what is there; here sp is moved first.
 */
static inline __attribute__((always_inline)) bool v8_begins_aarch64(const __u8 *code, __u32 len)
{
	for (__u32 at = 0; at < V8_PROLOGUE && at + 4 <= len; at += 4)
		if ((__u32)v8_code_at(code, len, at, 4) == V8_MOV_FP_SP)
			return true;
	return false;
}

#endif
