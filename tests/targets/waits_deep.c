/* SPDX-License-Identifier: MIT */
/*
 * waits_deep [DEPTH [NAP_US]]: the thread "worker" sleeps again and again, DEPTH calls deep and without frame pointers.
 * Question: any; the answer is how often.
 */
/* build: -fomit-frame-pointer */
#include "waits.h"

static int depth = 200, nap_us = 4000;
static atomic_ullong naps;

FRAME static int bottom_wait(void)
{
	NO_FRAME_POINTER();
	waits_nap(nap_us);
	atomic_fetch_add(&naps, 1);
	return 0;
}

/* Frames of different sizes: a rule that is right for one of them is wrong for its caller. */
FRAME static int descend_odd(int left);

FRAME static int descend_even(int left)
{
	volatile char room[48];

	NO_FRAME_POINTER();
	room[0] = (char)left;
	return (left > 1 ? descend_odd(left - 1) : bottom_wait()) + room[0];
}

FRAME static int descend_odd(int left)
{
	volatile char room[160];

	NO_FRAME_POINTER();
	room[0] = (char)left;
	return (left > 1 ? descend_even(left - 1) : bottom_wait()) + room[0];
}

FRAME static void worker(void)
{
	target_arrived();
	for (;;)
		descend_even(depth);
}

static void answer(const char *question)
{
	printf("%llu\n", atomic_load(&naps));
}

int main(int argc, char **argv)
{
	target_init();
	depth = argc > 1 ? atoi(argv[1]) : depth;
	nap_us = argc > 2 ? atoi(argv[2]) : nap_us;
	target_start("worker", worker);
	target_ready();
	target_serve(answer);
}
