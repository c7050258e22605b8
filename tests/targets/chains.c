/* SPDX-License-Identifier: MIT */
/*
 * chains COUNT: threads that never sleep, and are in outer_N, middle_N and inner_N of one N, and a moment later of another. They are
 * pages apart, so that a stack which was copied while its thread ran would have one of one N and one of another.
 * Question: any; the answer rises while they run.
 */
#include "target.h"

static volatile uint64_t turns;

enum { DISTANCE = 6000, MOMENT = 50 };

#define CHAIN(n) \
	FRAME static void inner_##n(void) \
	{ \
		for (volatile int i = 0; i < MOMENT; i++) \
			; \
		turns = turns + 1; \
	} \
	FRAME static void middle_##n(void) \
	{ \
		volatile char room[DISTANCE]; \
\
		room[0] = room[DISTANCE - 1] = n; \
		inner_##n(); \
		room[1] = room[0]; \
	} \
	FRAME static void outer_##n(void) \
	{ \
		volatile char room[DISTANCE]; \
\
		room[0] = room[DISTANCE - 1] = n; \
		middle_##n(); \
		room[1] = room[0]; \
	}

CHAIN(0)
CHAIN(1)
CHAIN(2)
CHAIN(3)
CHAIN(4)
CHAIN(5)
CHAIN(6)
CHAIN(7)

FRAME static void chain(void)
{
	static void (*const outers[])(void) = {outer_0, outer_1, outer_2, outer_3, outer_4, outer_5, outer_6, outer_7};
	unsigned seed = (unsigned)target_gettid();

	target_arrived();
	for (;;)
		outers[rand_r(&seed) % 8]();
}

static void answer(const char *question)
{
	printf("%llu\n", (unsigned long long)turns);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;

	target_init();
	for (int i = 0; i < count; i++)
		target_start("chain", chain);
	target_ready();
	target_serve(answer);
}
