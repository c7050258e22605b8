/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_REQUESTS_H
#define STAKEOUT_OFFCPU_FEED_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Processes to be read: the easiest first, then in the order in which they were asked for, each only once however often
 * it was asked for. Any thread may ask; one takes.
 */
struct requests;

enum { REQUESTS_MAX = 16384 }; /* waiting at a time: BPF has no room for more processes */

enum request_flag {
	REQUEST_FORGET = 1 << 0, /* it has ended: done first, other requests are for a new process with the same pid */
	REQUEST_READ = 1 << 1,
	REQUEST_ASKED = 1 << 2, /* BPF waits for the answer; without READ: it ended before it was read */
};

struct request {
	pid_t tgid;
	uint32_t what;   /* enum request_flag */
	uint64_t effort; /* bytes of new code, for example */
};

struct requests *requests_create(void); /* NULL when memory is exhausted */
void requests_destroy(struct requests *requests);

/* False: too many wait. */
bool requests_add(struct requests *requests, struct request request);

/*
 * Another thread wants to handle a process: its request, if it waits here, is removed and merged into this one. False:
 * it was the last one taken, and is being worked on.
 */
bool requests_claim(struct requests *requests, struct request *request);

/* Waits for one. False: requests_end() was called. */
bool requests_take(struct requests *requests, struct request *out);

/* Waits until none is left, nor is being worked on, or until then (CLOCK_MONOTONIC). False: that came first. */
bool requests_wait(struct requests *requests, uint64_t until_ns);

void requests_end(struct requests *requests);

#endif
