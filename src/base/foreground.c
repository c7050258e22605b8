/* SPDX-License-Identifier: MIT */
#include "base/foreground.h"

#include <sched.h>

void foreground_begin(struct foreground *f)
{
	const struct sched_param first = {.sched_priority = 1};
	const int policy = sched_getscheduler(0), ordinary = policy & ~SCHED_RESET_ON_FORK;

	if (f->begun || policy < 0 || (ordinary != SCHED_OTHER && ordinary != SCHED_BATCH && ordinary != SCHED_IDLE))
		return;
	/* What it starts is not like that. */
	f->begun = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
	f->policy = policy;
}

void foreground_end(struct foreground *f)
{
	const struct sched_param none = {0};

	/* Who was allowed it by a limit alone cannot take the flag back. */
	if (f->begun && sched_setscheduler(0, f->policy, &none) < 0)
		sched_setscheduler(0, f->policy | SCHED_RESET_ON_FORK, &none);
	f->begun = false;
}
