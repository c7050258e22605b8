/* SPDX-License-Identifier: MIT */
#include "base/signals.h"

#include <errno.h>
#include <stdbool.h>

static bool is_ours(const struct signal_loan *loan, const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == loan->handler;
}

/* Looked at each time: test runners and fuzzers install their own handlers, again for each test. */
static int install(struct signal_loan *loan)
{
	const struct sigaction ours = {.sa_sigaction = loan->handler, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	struct sigaction now;

	if (sigaction(loan->sig, NULL, &now) < 0)
		return -errno;
	if (is_ours(loan, &now))
		return 0;
	loan->before = now;
	return sigaction(loan->sig, &ours, NULL) < 0 ? -errno : 0;
}

int signal_loan_take(struct signal_loan *loan)
{
	int rc;

	pthread_mutex_lock(&loan->lock);
	rc = install(loan);
	if (rc == 0)
		loan->users++;
	pthread_mutex_unlock(&loan->lock);
	return rc;
}

void signal_loan_return(struct signal_loan *loan)
{
	struct sigaction now;

	pthread_mutex_lock(&loan->lock);
	if (--loan->users == 0 && sigaction(loan->sig, NULL, &now) == 0 && is_ours(loan, &now))
		sigaction(loan->sig, &loan->before, NULL);
	pthread_mutex_unlock(&loan->lock);
}

static bool ends_by_default(int sig)
{
	return sig != SIGCHLD && sig != SIGURG && sig != SIGWINCH && sig != SIGCONT;
}

/* A fault cannot be ignored: the instruction runs again, and the default action ends us. */
void signal_loan_pass_on(const struct signal_loan *loan, siginfo_t *info, void *context)
{
	const struct sigaction by_default = {.sa_handler = SIG_DFL}, *before = &loan->before;
	bool is_fault = info->si_code > 0 && loan->sig != SIGCHLD; /* otherwise somebody sent it */

	if (before->sa_flags & SA_SIGINFO) {
		before->sa_sigaction(loan->sig, info, context);
	} else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
		before->sa_handler(loan->sig);
	} else if (is_fault || (before->sa_handler == SIG_DFL && ends_by_default(loan->sig))) {
		sigaction(loan->sig, &by_default, NULL);
		if (!is_fault)
			raise(loan->sig);
	}
}
