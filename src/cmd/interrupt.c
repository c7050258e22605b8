/* SPDX-License-Identifier: MIT */
#include "cmd/interrupt.h"

#include <signal.h>
#include <stddef.h>

#include "target/patience.h"

static void on_interrupt(int sig)
{
	patience_interrupt();
}

void interrupt_catch(void)
{
	const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
	struct sigaction old;

	if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGINT, &action, NULL);
}

void interrupt_let_end(void)
{
	const struct sigaction by_default = {.sa_handler = SIG_DFL};
	struct sigaction old;

	if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGINT, &by_default, NULL);
}
