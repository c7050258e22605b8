/* SPDX-License-Identifier: MIT */
/*
 * vla: frames whose size only the running program knows (alloca, variable-length arrays), and a frame that realigns
 * the stack, for which x86 compilers describe the frame address by a DWARF expression.
 */
/* build: -fomit-frame-pointer */
#include "target.h"

#include <alloca.h>

FRAME static int with_alloca(int n)
{
	volatile char *room = alloca((size_t)n * 13);

	room[0] = 1;
	target_block();
	return room[0];
}

FRAME static int with_vla(int n)
{
	volatile char room[n * 7 + 1];

	room[n] = 1;
	return with_alloca(n * 3) + room[n];
}

FRAME static int realigned(int n, int a, int b, int c, int d, int e, int f, int g)
{
	volatile char room[n] __attribute__((aligned(64)));
	volatile char aligned[256] __attribute__((aligned(64)));

	room[0] = (char)(a + b + c);
	aligned[0] = (char)(d + e);
	return with_vla(n + 5) + room[0] + aligned[0] + f + g;
}

FRAME static void worker(void)
{
	for (int n = 5; n < 8; n++)
		realigned(n, 1, 2, 3, 4, 5, 6, 7);
}

int main(void)
{
	target_init();
	target_start("worker", worker);
	target_ready();
	target_serve(NULL);
}
