/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_MEM_H
#define STAKEOUT_MODEL_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * How everything reads a target's memory: a stack copy, a live process, a saved file. Implementations embed
 * struct mem as their first member.
 */
struct mem {
	/* Bytes read from `address` (may be fewer than `len`), or a negative errno when there are none. */
	ssize_t (*read)(struct mem *mem, uint64_t address, void *buf, size_t len);
};

static inline bool mem_read_exact(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	return mem->read(mem, address, buf, len) == (ssize_t)len;
}

#endif
