/* SPDX-License-Identifier: MIT */
/*
 * nappers: threads that go down to an ever different depth, sleep there for a moment, and come back up. A stack that
 * was copied while its thread moved would be torn: anything but nap < descend… < napper.
 * Question: any; the answer is how many naps there were.
 */
#include "target.h"

#include <time.h>

enum { THREADS = 8, DEEPEST = 40 };

static atomic_ullong naps;

FRAME static void nap(void)
{
	struct timespec moment = {.tv_nsec = 100 * 1000};

	nanosleep(&moment, NULL);
	atomic_fetch_add(&naps, 1);
}

FRAME static int descend(int left)
{
	int below = 0;

	if (left > 1)
		below = descend(left - 1);
	else
		nap();
	return below + left;
}

FRAME static void napper(void)
{
	unsigned seed = (unsigned)target_gettid();

	target_arrived();
	for (;;)
		descend(1 + rand_r(&seed) % DEEPEST);
}

static void answer(const char *question)
{
	printf("%llu\n", atomic_load(&naps));
}

int main(void)
{
	target_init();
	for (int i = 0; i < THREADS; i++)
		target_start("napper", napper);
	target_ready();
	target_serve(answer);
}
