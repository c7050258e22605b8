/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_PACER_H
#define STAKEOUT_BASE_PACER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* For a thread that does something now and then, until another thread ends it without having to wait for it. */
struct pacer {
	pthread_mutex_t lock; /* guards `ended` */
	pthread_cond_t end;
	bool ended;
};

void pacer_init(struct pacer *pacer);
void pacer_deinit(struct pacer *pacer);

/* Sleeps until that time of CLOCK_MONOTONIC. False, at once, when it has been ended. */
bool pacer_rest_until(struct pacer *pacer, uint64_t until_ns);

void pacer_end(struct pacer *pacer);

#endif
