/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_REQUESTS_H
#define STAKEOUT_OFFCPU_FEED_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Processes to be read, the easiest first and else in the order in which they were asked for, each once however often it
 * was. Any thread may ask; one takes.
 */
struct requests;

enum { REQUESTS_MAX = 16384 }; /* that wait: BPF has room for no more processes */

enum request_flag {
	REQUEST_FORGET = 1 << 0, /* it has ended: before all else that is asked for, of a process with the same number */
	REQUEST_READ = 1 << 1,
	REQUEST_ASKED = 1 << 2, /* BPF waits for the answer; without READ it had ended before it was read */
};

struct request {
	pid_t tgid;
	uint32_t what;   /* enum request_flag */
	uint64_t effort; /* bytes of code that is new, say */
};

struct requests *requests_create(void); /* NULL when memory is exhausted */
void requests_destroy(struct requests *requests);

/* False: too many wait. */
bool requests_add(struct requests *requests, struct request request);

/*
 * Somebody else wants to see to a process: its request, if it waits, is taken out and becomes part of this one. False: it
 * is worked on, since it was taken last.
 */
bool requests_claim(struct requests *requests, struct request *request);

/* Waits for one. False: requests_end() was called. */
bool requests_take(struct requests *requests, struct request *out);

void requests_end(struct requests *requests);

#endif
