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

/*
 * The action for a signal belongs to the whole process, and somebody else may have set one. It is borrowed for as long as
 * anybody here needs it, in whichever thread, and what was there before is put back by the last one. A static one for each
 * signal: SIGNAL_LOAN(SIGBUS, on_bus_error).
 */
struct signal_loan {
	int sig;
	void (*handler)(int sig, siginfo_t *info, void *context);
	pthread_mutex_t lock; /* of what follows; but the handler itself reads `before` */
	unsigned users;
	struct sigaction before;
};

#define SIGNAL_LOAN(signal, function) {.sig = (signal), .handler = (function), .lock = PTHREAD_MUTEX_INITIALIZER}

/* -errno. If others have set an action since it was borrowed, theirs is what was there before. */
int signal_loan_take(struct signal_loan *loan);
void signal_loan_return(struct signal_loan *loan);

/* For the handler: does what would have happened without us. */
void signal_loan_pass_on(const struct signal_loan *loan, siginfo_t *info, void *context);

#endif
