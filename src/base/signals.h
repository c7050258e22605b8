/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_SIGNALS_H
#define STAKEOUT_BASE_SIGNALS_H

#include <pthread.h>
#include <signal.h>

/*
 * To be called around pthread_create(): signals go to the main thread, where the Ctrl-C handler expects to run. But
 * SIGBUS is handled in the thread that caused it.
 */
static inline void signals_block_for_worker(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

static inline void signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
