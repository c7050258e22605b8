/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_BYTES_H
#define STAKEOUT_RUNTIME_V8_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/v8/heap.h"

/* A place in the bytes of an object. Where there are none, or none that can be read, it is bad, and they are all 0. */
struct v8_bytes {
	const struct heap *heap;
	uint64_t start; /* address */
	uint32_t at, len;
	bool bad;
};

/* `data` is where the bytes of such an object begin. False: its length cannot be read, or is less than `at`. */
bool v8_bytes_begin(const struct heap *heap, uint64_t object, enum v8_fact data, uint32_t at, struct v8_bytes *out);

uint8_t v8_bytes_take(struct v8_bytes *bytes);
uint32_t v8_bytes_number(struct v8_bytes *bytes); /* of variable length, seven bits in each byte */

#endif
