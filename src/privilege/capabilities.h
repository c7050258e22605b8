/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PRIVILEGE_CAPABILITIES_H
#define STAKEOUT_PRIVILEGE_CAPABILITIES_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

#define RIGHT(capability) (UINT64_C(1) << (capability))

/* Sets of capabilities of the calling thread: bit N is number N. */
struct capabilities {
	uint64_t effective;
	uint64_t permitted;
	uint64_t inheritable;
};

bool capabilities_read(struct capabilities *out);

/* 0 or -errno. Whatever is not permitted can never be had again. */
int capabilities_write(const struct capabilities *capabilities);

/* The number of the last one that the running kernel knows. */
int capabilities_last(void);

/*
 * Gives up all that this program never needs, for good, and for whatever it executes: to be called with one thread, and
 * after a command of the user's was started.
 */
void capabilities_drop_needless(void);

/* Gives up all of them. 0 or -errno. */
int capabilities_drop_all(void);

#endif
