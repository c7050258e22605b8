/* SPDX-License-Identifier: MIT */
#include "base/pacer.h"

#include "base/clock.h"

void pacer_init(struct pacer *pacer)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&pacer->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&pacer->end, &attr);
	pthread_condattr_destroy(&attr);
	pacer->ended = false;
}

void pacer_deinit(struct pacer *pacer)
{
	pthread_mutex_destroy(&pacer->lock);
	pthread_cond_destroy(&pacer->end);
}

bool pacer_rest_until(struct pacer *pacer, uint64_t until_ns)
{
	struct timespec deadline = ns_to_timespec(until_ns);
	bool ended;

	pthread_mutex_lock(&pacer->lock);
	while (!pacer->ended && pthread_cond_timedwait(&pacer->end, &pacer->lock, &deadline) == 0)
		;
	ended = pacer->ended;
	pthread_mutex_unlock(&pacer->lock);
	return !ended;
}

void pacer_end(struct pacer *pacer)
{
	pthread_mutex_lock(&pacer->lock);
	pacer->ended = true;
	pthread_cond_signal(&pacer->end);
	pthread_mutex_unlock(&pacer->lock);
}
