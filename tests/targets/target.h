/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_TARGET_H
#define STAKEOUT_TESTS_TARGET_H

/*
 * What every target shares. A target starts its threads, prints "ready PID name=TID…" once each of them is where the
 * test wants it, and then serves its standard input: a line is a question, a line is the answer, the end of the file
 * ends the target. It dies with the process that started it.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "frame.h"

enum { TARGET_MAX_NAMED = 64 };

struct target_thread {
	const char *name;
	void (*run)(void);
	atomic_int tid; /* set when the thread is about to block or to spin: it is where the test wants it */
};

static struct target_thread target_threads[TARGET_MAX_NAMED];
static int target_nthreads;
static __thread struct target_thread *target_self;

static inline pid_t target_gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static inline void target_die(const char *what)
{
	perror(what);
	exit(1);
}

static inline void target_init(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* To be called last before a named thread blocks or spins. */
static inline void target_arrived(void)
{
	if (target_self)
		atomic_store(&target_self->tid, target_gettid());
}

/* Blocks for ever, in a frame of its own. */
__attribute__((unused)) FRAME static void target_block(void)
{
	target_arrived();
	for (;;)
		pause();
}

static void *target_thread_main(void *arg)
{
	target_self = (struct target_thread *)arg; /* as C++ wants it */
	prctl(PR_SET_NAME, target_self->name);
	target_self->run();
	return NULL;
}

/* Starts a thread that the ready line names. It has to call target_arrived() or target_block(). */
__attribute__((unused)) static void target_start(const char *name, void (*run)(void))
{
	struct target_thread *t = &target_threads[target_nthreads++];
	pthread_t thread;

	t->name = name;
	t->run = run;
	errno = pthread_create(&thread, NULL, target_thread_main, t);
	if (errno)
		target_die("pthread_create");
}

__attribute__((unused)) static void target_ready(void)
{
	for (int i = 0; i < target_nthreads; i++)
		while (!atomic_load(&target_threads[i].tid))
			sched_yield();
	printf("ready %d", (int)getpid());
	for (int i = 0; i < target_nthreads; i++)
		printf(" %s=%d", target_threads[i].name, (int)target_threads[i].tid);
	printf("\n");
	fflush(stdout);
}

/* Answers each line of standard input with what `answer` prints; never returns. */
__attribute__((unused, noreturn)) FRAME static void target_serve(void (*answer)(const char *question))
{
	char line[64];
	size_t len = 0;

	while (read(STDIN_FILENO, &line[len], 1) == 1) {
		if (line[len] != '\n') {
			len += len < sizeof(line) - 1;
			continue;
		}
		line[len] = '\0';
		len = 0;
		if (answer)
			answer(line);
		fflush(stdout);
	}
	_exit(0);
}

#endif
