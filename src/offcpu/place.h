/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_PLACE_H
#define STAKEOUT_OFFCPU_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/stack.h"

/*
 * A place is an address in terms that outlive its process: the number of the file or process that has the code, from 1
 * on, and the address in it. 0 is no place.
 */
enum { PLACE_SHIFT = 48, PLACE_MAX_NUMBER = (1 << (64 - PLACE_SHIFT)) - 1 };

/* 0 when the address does not fit. */
static inline uint64_t place_make(uint32_t number, uint64_t vaddr)
{
	return vaddr >> PLACE_SHIFT ? 0 : (uint64_t)number << PLACE_SHIFT | vaddr;
}

/* The two parts of a place. */
static inline uint32_t place_split(uint64_t place, uint64_t *vaddr)
{
	*vaddr = place & ((UINT64_C(1) << PLACE_SHIFT) - 1);
	return (uint32_t)(place >> PLACE_SHIFT);
}

/*
 * The place of a frame, found through `find`; the frame's own address when there is none. A return address may be the
 * first of another file: what counts is the call before it.
 */
static inline uint64_t place_of_frame(const struct raw_frame *frame, uint64_t (*find)(void *ctx, uint64_t address), void *ctx)
{
	uint64_t back = frame->flags & FRAME_RETURN_ADDRESS ? 1 : 0;
	uint64_t place = find(ctx, frame->pc - back);

	return place ? place + back : frame->pc;
}

#endif
