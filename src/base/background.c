/* SPDX-License-Identifier: MIT */
#include "base/background.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "base/signals.h"

/*
 * A thread of this nice value that competes with another one gets a tenth of the CPU: enough to come to an end on a
 * machine where all of them are busy.
 */
enum { NICER = 10 };

struct job {
	const cpu_set_t *busy;
	void (*work)(void *arg);
	void *arg;
};

/* Of this thread only. A thread of SCHED_BATCH does not push another one off its CPU when it wakes up. */
static void give_way(void)
{
	const struct sched_param none = {0};

	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_BATCH, &none);
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER);
}

/* Likewise; but not if that left less than half of them for work that many can share. */
static void leave(const cpu_set_t *busy)
{
	cpu_set_t own;
	int usable;

	if (sched_getaffinity(0, sizeof(own), &own) < 0)
		return;
	usable = CPU_COUNT(&own);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, busy))
			CPU_CLR(cpu, &own);
	if (2 * CPU_COUNT(&own) >= usable)
		sched_setaffinity(0, sizeof(own), &own);
}

static void *run(void *arg)
{
	struct job *job = arg;

	give_way();
	if (job->busy)
		leave(job->busy);
	job->work(job->arg);
	return NULL;
}

void background_run(const cpu_set_t *busy, void (*work)(void *arg), void *arg)
{
	struct job job = {busy, work, arg};
	pthread_t thread;
	sigset_t before;
	int error;

	signals_block_for_worker(&before);
	error = pthread_create(&thread, NULL, run, &job);
	signals_restore(&before);
	if (error)
		work(arg); /* as it is: better than nothing */
	else
		pthread_join(thread, NULL);
}
