/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_PAGE_FAULT_H
#define STAKEOUT_BPF_PAGE_FAULT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/* A thread that waits for a page of memory, and for which. Shared by page_fault.bpf.c and kernel/page_faults.c. */
struct page_fault {
	__u64 tid;
	__u64 address; /* of the page */
};

#endif
