/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_SWITCH_CLOCK_H
#define STAKEOUT_BPF_SWITCH_CLOCK_H

#ifndef __bpf__
#include <linux/types.h>
#endif

enum {
	OFFCPU_COMPARED_FOR_NS = 1000000,
	OFFCPU_FORGOTTEN_NS = 2000000, /* what was found so long ago says little */
	OFFCPU_DRIFT = 1024, /* two clocks drift by less than one part in so many: the kernel slews none faster */
	OFFCPU_JUMP_NS = 50000000,  /* more than that is no delay of ours: a virtual machine was halted */
};

/* By how much one clock is ahead of another, which is at hand. */
struct switch_clock {
	__u64 compared; /* when, by the other one; 0: never */
	__u64 ahead;
	__u64 ns;  /* when a thread left, */
	__u32 pid; /* and which one got the CPU; 0: none */
	__u32 sure; /* two comparisons in a row agree */
};

/*
 * `now` was read from the other clock a little earlier than `ns` from this one; much earlier, when a hypervisor has taken
 * the CPU away in between. So what is found is too much rather than too little, and the least counts; one comparison alone does
 * not.
 */
static inline void switch_clock_compare(struct switch_clock *c, __u64 now, __u64 ns)
{
	__u64 ahead = ns - now, most = c->ahead + (now - c->compared) / OFFCPU_DRIFT;
	__s64 excess = (__s64)(ahead - most);

	c->sure = c->compared && now - c->compared <= OFFCPU_FORGOTTEN_NS && excess < OFFCPU_JUMP_NS;
	c->ahead = c->sure && excess > 0 ? most : ahead;
	c->compared = now;
}

/* It is time to compare again: until then this clock itself is to be looked at. */
static inline int switch_clock_is_due(const struct switch_clock *c, __u64 now)
{
	return !c->sure || now - c->compared > OFFCPU_COMPARED_FOR_NS;
}

static inline __u64 switch_clock_at(const struct switch_clock *c, __u64 now)
{
	return now + c->ahead;
}

#endif
