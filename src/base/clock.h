/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_CLOCK_H
#define STAKEOUT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

enum { NS_PER_S = 1000000000 };

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static inline uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline struct timespec ns_to_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

#endif
