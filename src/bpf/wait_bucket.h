/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_WAIT_BUCKET_H
#define STAKEOUT_BPF_WAIT_BUCKET_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/*
 * Waits by their length, in buckets, eight for each doubling: none is further than 6.25 % away from the middle of its
 * bucket. Those below 256 ns, shorter than any switch of threads, are in the first one.
 */
enum {
	OFFCPU_SHORTEST_BITS = 8,
	OFFCPU_SUB_BITS = 3,
	OFFCPU_BUCKETS = 240, /* that BPF counts in: up to 4.6 minutes */
};

/* The position of the highest bit. By hand, as BPF has no instruction for it. */
static inline __u32 offcpu_log2(__u64 value)
{
	__u32 log = (value > 0xffffffff) << 5, step;

	value >>= log;
	step = (value > 0xffff) << 4;
	value >>= step;
	log |= step;
	step = (value > 0xff) << 3;
	value >>= step;
	log |= step;
	step = (value > 0xf) << 2;
	value >>= step;
	log |= step;
	step = (value > 0x3) << 1;
	value >>= step;
	log |= step;
	return log | (__u32)(value >> 1);
}

static inline __u32 offcpu_bucket_of(__u64 ns)
{
	__u32 bits;

	if (ns < 1 << OFFCPU_SHORTEST_BITS)
		ns = 1 << OFFCPU_SHORTEST_BITS;
	bits = offcpu_log2(ns);
	return (bits - OFFCPU_SHORTEST_BITS) << OFFCPU_SUB_BITS |
	       (__u32)(ns >> (bits - OFFCPU_SUB_BITS) & ((1 << OFFCPU_SUB_BITS) - 1));
}

static inline __u64 offcpu_bucket_middle(__u32 bucket)
{
	__u32 bits = (bucket >> OFFCPU_SUB_BITS) + OFFCPU_SHORTEST_BITS - OFFCPU_SUB_BITS;
	__u64 first = 1 << OFFCPU_SUB_BITS | (bucket & ((1 << OFFCPU_SUB_BITS) - 1));

	return (first << bits) + (1ull << bits) / 2;
}

#endif
