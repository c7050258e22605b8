/* SPDX-License-Identifier: MIT */
/* recursion [DEPTH [spin]]: the thread "worker" blocks or spins DEPTH calls deep, in frames of at least 128 bytes. */
#include "target.h"

static int depth = 10000;
static int spins;

FRAME static int bottom(void)
{
	if (!spins)
		target_block();
	target_arrived();
	while (spins)
		__asm__ volatile("" ::: "memory");
	return 0;
}

FRAME static int recurse(int left)
{
	volatile char room[128];

	room[0] = (char)left;
	return (left > 1 ? recurse(left - 1) : bottom()) + room[0];
}

FRAME static void worker(void)
{
	recurse(depth);
}

int main(int argc, char **argv)
{
	target_init();
	depth = argc > 1 ? atoi(argv[1]) : depth;
	spins = argc > 2;
	target_start("worker", worker);
	target_ready();
	target_serve(NULL);
}
