/* SPDX-License-Identifier: MIT */
/*
 * waits_lengths: the thread "napper" sleeps 100 times for 3 ms and 10 times for 40 ms, all at one place. Question: "go"; the
 * answer is how long each call took, in ns, as a JSON array.
 */
#include "waits.h"

#include <semaphore.h>

enum { NAPS = 110, SHORT_US = 3000, LONG_US = 40000, EVERY = 11 };

static sem_t gate, finished;
static uint64_t took_ns[NAPS];

FRAME static void nap_wait(int i)
{
	uint64_t before = waits_now(CLOCK_MONOTONIC);

	waits_nap(i % EVERY ? SHORT_US : LONG_US);
	took_ns[i] = waits_now(CLOCK_MONOTONIC) - before;
}

FRAME static void napper(void)
{
	target_arrived();
	for (;;) {
		sem_wait(&gate);
		for (int i = 0; i < NAPS; i++)
			nap_wait(i);
		sem_post(&finished);
	}
}

static void answer(const char *question)
{
	sem_post(&gate);
	sem_wait(&finished);
	for (int i = 0; i < NAPS; i++)
		printf("%s%llu", i ? "," : "[", (unsigned long long)took_ns[i]);
	printf("]\n");
}

int main(void)
{
	target_init();
	sem_init(&gate, 0, 0);
	sem_init(&finished, 0, 0);
	target_start("napper", napper);
	target_ready();
	target_serve(answer);
}
