/* SPDX-License-Identifier: MIT */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/signals.h"

enum { MAX_THREADS = 16 };

struct job {
	atomic_size_t next;
	size_t count;
	void (*work)(void *ctx, size_t i);
	void *ctx;
};

static void *run(void *arg)
{
	struct job *job = arg;
	size_t i;

	while ((i = atomic_fetch_add(&job->next, 1)) < job->count)
		job->work(job->ctx, i);
	return NULL;
}

static size_t usable_cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

void parallel_for(size_t count, void (*work)(void *ctx, size_t i), void *ctx)
{
	struct job job = {.count = count, .work = work, .ctx = ctx};
	size_t cores = count > 1 ? usable_cores() : 1, started = 0;
	size_t want = (cores < count ? cores : count) - (count > 0);
	pthread_t threads[MAX_THREADS];
	sigset_t before;

	signals_block_for_worker(&before);
	while (started < want && started < MAX_THREADS && pthread_create(&threads[started], NULL, run, &job) == 0)
		started++;
	signals_restore(&before);
	run(&job);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}
