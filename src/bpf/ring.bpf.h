/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_RING_H
#define STAKEOUT_BPF_RING_H

/* What the programs tell the loader, and what could not be told. */

__u64 losses[OFFCPU_LOSSES];

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1); /* set by the loader */
} ring SEC(".maps");

static void lose(enum offcpu_lost what)
{
	__sync_fetch_and_add(&losses[what], 1);
}

#endif
