/* SPDX-License-Identifier: MIT */
/*
 * spinners [loop|vdso|plt]…: threads that never sleep. "loop" stays in one function, "vdso" is mostly in the vDSO's
 * clock_gettime, "plt" mostly in a PLT stub and a tiny library function.
 * Question: any; the answer rises while they run.
 */
/* build: -fplt -fno-builtin -Wl,-z,lazy */
#include "target.h"

#include <time.h>

static volatile uint64_t turns;

FRAME static void spin_loop(void)
{
	target_arrived();
	for (;;)
		turns = turns + 1;
}

FRAME static void spin_vdso(void)
{
	struct timespec t;

	target_arrived();
	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		turns = turns + 1;
	}
}

FRAME static void spin_plt(void)
{
	target_arrived();
	for (;;)
		turns += (uint64_t)abs((int)turns | 1);
}

static void answer(const char *question)
{
	printf("%llu\n", (unsigned long long)turns);
}

int main(int argc, char **argv)
{
	target_init();
	for (int i = 1; i < argc; i++)
		target_start(argv[i], argv[i][0] == 'l' ? spin_loop : argv[i][0] == 'v' ? spin_vdso : spin_plt);
	target_ready();
	target_serve(answer);
}
