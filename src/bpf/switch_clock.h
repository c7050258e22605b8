/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_SWITCH_CLOCK_H
#define STAKEOUT_BPF_SWITCH_CLOCK_H

#ifndef __bpf__
#include <linux/types.h>
#endif

enum {
	OFFCPU_COMPARED_FOR_NS = 1000000,
	OFFCPU_DRIFT = 512,	    /* two clocks drift by less than one part in so many: the kernel slews none faster */
	OFFCPU_JUMP_NS = 50000000,  /* more than that is no delay of ours: a virtual machine was halted */
};

/* By how much one clock is ahead of another, which is at hand. */
struct switch_clock {
	__u64 compared; /* when, by the other one; 0: never */
	__u64 ahead;
	__u64 ns;  /* when a thread left, */
	__u32 pid; /* and which one got the CPU; 0: none */
	__u32 zero;
};

/*
 * `now` was read from the other clock a little earlier than `ns` from this one; much earlier, when a hypervisor has taken
 * the CPU away in between. So what is found is too much rather than too little, and the least counts.
 */
static inline void switch_clock_compare(struct switch_clock *c, __u64 now, __u64 ns)
{
	__u64 ahead = ns - now, most = c->ahead + (now - c->compared) / OFFCPU_DRIFT;
	__s64 excess = (__s64)(ahead - most);

	c->ahead = c->compared && excess > 0 && excess < OFFCPU_JUMP_NS ? most : ahead;
	c->compared = now;
}

static inline __u64 switch_clock_at(const struct switch_clock *c, __u64 now)
{
	return now + c->ahead;
}

#endif
