/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/requests.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct requests {
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	pthread_cond_t done; /* signalled when nothing is left to do */
	struct request ring[REQUESTS_MAX];
	size_t first;
	size_t len;
	pid_t taken; /* the one taken last; 0: none yet */
	bool working; /* on it */
	bool ended;
};

struct requests *requests_create(void)
{
	struct requests *requests = calloc(1, sizeof(*requests));
	pthread_condattr_t monotonic;

	if (!requests)
		return NULL;
	pthread_mutex_init(&requests->lock, NULL);
	pthread_cond_init(&requests->wanted, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&requests->done, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return requests;
}

void requests_destroy(struct requests *requests)
{
	if (!requests)
		return;
	pthread_cond_destroy(&requests->wanted);
	pthread_cond_destroy(&requests->done);
	pthread_mutex_destroy(&requests->lock);
	free(requests);
}

static struct request *at(struct requests *requests, size_t i)
{
	return &requests->ring[(requests->first + i) % REQUESTS_MAX];
}

/* Its index; `len` when it does not wait. Usually few do, and each is there once. */
static size_t find(struct requests *requests, pid_t tgid)
{
	size_t i = 0;

	while (i < requests->len && at(requests, i)->tgid != tgid)
		i++;
	return i;
}

static struct request pop(struct requests *requests, size_t i)
{
	struct request request = *at(requests, i);

	for (; i > 0; i--)
		*at(requests, i) = *at(requests, i - 1);
	requests->first = (requests->first + 1) % REQUESTS_MAX;
	requests->len--;
	return request;
}

static void merge(struct request *request, uint32_t what)
{
	if (what & REQUEST_FORGET)
		request->what &= ~(uint32_t)REQUEST_READ;
	request->what |= what;
}

static bool add(struct requests *requests, struct request request)
{
	size_t i = find(requests, request.tgid);

	if (i < requests->len) {
		merge(at(requests, i), request.what);
		return true;
	}
	if (requests->len == REQUESTS_MAX)
		return false;
	*at(requests, requests->len++) = request;
	pthread_cond_signal(&requests->wanted);
	return true;
}

bool requests_add(struct requests *requests, struct request request)
{
	bool ok;

	pthread_mutex_lock(&requests->lock);
	ok = add(requests, request);
	pthread_mutex_unlock(&requests->lock);
	return ok;
}

bool requests_claim(struct requests *requests, struct request *request)
{
	bool is_free;
	size_t i;

	pthread_mutex_lock(&requests->lock);
	is_free = requests->taken != request->tgid;
	i = find(requests, request->tgid);
	if (is_free && i < requests->len) {
		struct request waiting = pop(requests, i);

		merge(&waiting, request->what);
		*request = waiting;
	}
	pthread_mutex_unlock(&requests->lock);
	return is_free;
}

static size_t find_easiest(struct requests *requests)
{
	size_t easiest = 0;

	for (size_t i = 1; i < requests->len && at(requests, easiest)->effort; i++)
		if (at(requests, i)->effort < at(requests, easiest)->effort)
			easiest = i;
	return easiest;
}

bool requests_take(struct requests *requests, struct request *out)
{
	bool ended;

	pthread_mutex_lock(&requests->lock);
	requests->taken = 0;
	requests->working = false;
	if (!requests->len)
		pthread_cond_broadcast(&requests->done);
	while (!requests->len && !requests->ended)
		pthread_cond_wait(&requests->wanted, &requests->lock);
	ended = requests->ended;
	if (!ended) {
		*out = pop(requests, find_easiest(requests));
		requests->taken = out->tgid;
		requests->working = true;
	}
	pthread_mutex_unlock(&requests->lock);
	return !ended;
}

bool requests_wait(struct requests *requests, uint64_t until_ns)
{
	const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};
	bool busy;
	int rc = 0;

	pthread_mutex_lock(&requests->lock);
	while ((busy = requests->len || requests->working) && rc == 0)
		rc = pthread_cond_timedwait(&requests->done, &requests->lock, &until);
	pthread_mutex_unlock(&requests->lock);
	return !busy;
}

void requests_end(struct requests *requests)
{
	pthread_mutex_lock(&requests->lock);
	requests->ended = true;
	pthread_cond_signal(&requests->wanted);
	pthread_mutex_unlock(&requests->lock);
}
