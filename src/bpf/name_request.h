/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_NAME_REQUEST_H
#define STAKEOUT_BPF_NAME_REQUEST_H

/* A kernel address, and its text, as the program and its caller pass them to each other. */

#ifndef __bpf__
#include <linux/types.h>
#endif

struct name_request {
	__u64 address;
	char text[256];
};

#endif
