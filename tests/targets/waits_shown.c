/* SPDX-License-Identifier: MIT */
/* waits_shown: threads in system calls whose arguments have a meaning: a join, a sleep, a wait without end. */
#include <poll.h>
#include <time.h>

#include "target.h"

static pthread_t joined;

FRAME static void joins(void)
{
	target_arrived();
	pthread_join(joined, NULL);
}

FRAME static void *is_joined(void *arg)
{
	prctl(PR_SET_NAME, "joined");
	while (pause() < 0)
		;
	return NULL;
}

FRAME static void sleeps(void)
{
	const struct timespec day = {.tv_sec = 86400};

	target_arrived();
	clock_nanosleep(CLOCK_MONOTONIC, 0, &day, NULL);
}

FRAME static void polls(void)
{
	target_arrived();
	poll(NULL, 0, -1);
}

int main(void)
{
	target_init();
	pthread_create(&joined, NULL, is_joined, NULL);
	target_start("joins", joins);
	target_start("sleeps", sleeps);
	target_start("polls", polls);
	target_ready();
	target_serve(NULL);
}
