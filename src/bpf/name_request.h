/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_NAME_REQUEST_H
#define STAKEOUT_BPF_NAME_REQUEST_H

/*
 * How many kernel addresses are named in one run, and how long each text may be. Shared by the program and its caller.
 */
enum {
	NAME_REQUEST_COUNT = 64,
	NAME_REQUEST_TEXT = 256,
};

#endif
