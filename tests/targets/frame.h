/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_FRAME_H
#define STAKEOUT_TESTS_FRAME_H

/*
 * FRAME: a function that stays a frame of its own: not inlined, cloned or specialised, and its calls are not tail
 * calls. IN_ORDER: functions that lie one behind the other in the program, as in the source, whether called or not.
 */
#ifdef __clang__
#define FRAME    __attribute__((noinline, disable_tail_calls))
#define IN_ORDER __attribute__((section(".text.in_order"), used))
#else
#define FRAME    __attribute__((noipa, optimize("no-optimize-sibling-calls")))
#define IN_ORDER __attribute__((section(".text.in_order"), used, no_reorder))
#endif

#endif
