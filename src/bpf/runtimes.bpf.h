/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_RUNTIMES_H
#define STAKEOUT_BPF_RUNTIMES_H

/* The frames of language runtimes that a walk comes through: see runtime_layout.h. */

#include "bpf/walk.bpf.h"

const volatile bool want_runtimes = true; /* set by the loader */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32); /* tgid */
	__type(value, struct offcpu_runtime);
} runtimes SEC(".maps");

/* Appends a frame to those of the stack. False: there is no more room. */
static bool add_runtime_frame(struct stack_scratch *scratch, __u64 code, __u64 place, __u32 raw, __u32 runtime,
			      __u32 version)
{
	struct offcpu_runtime_frame *frame;
	__u32 n = scratch->head.nruntime;

	if (n >= OFFCPU_RUNTIME_FRAMES)
		return false;
	frame = &scratch->runtime[n];
	frame->code = code;
	frame->place = place;
	frame->more = 0;
	frame->version = version;
	frame->raw = (__u16)raw;
	frame->runtime = (__u16)runtime;
	mix_frame(&scratch->runtime_id, code);
	mix_frame(&scratch->runtime_id, place);
	mix_frame(&scratch->runtime_id, (__u64)version << 32 | raw << 8 | runtime);
	scratch->head.nruntime = n + 1;
	return true;
}

/* One more word of the frame that was added last. */
static void add_more(struct stack_scratch *scratch, __u64 more)
{
	__u64 last = scratch->head.nruntime - 1;

	asm volatile("" : "+r"(last)); /* keeps the check below to what is used */
	if (last >= OFFCPU_RUNTIME_FRAMES)
		return;
	scratch->runtime[last].more = more;
	mix_frame(&scratch->runtime_id, more);
}

/* Those that came after the first n, when the hash was this, are not to be trusted. */
static void drop_runtime_frames(struct stack_scratch *scratch, __u32 n, struct offcpu_stack_id id, __u32 why)
{
	scratch->head.nruntime = n;
	scratch->head.runtime_end = why;
	scratch->runtime_id = id;
}

#endif
