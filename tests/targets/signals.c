/* SPDX-License-Identifier: MIT */
/*
 * signals: threads blocked in signal handlers. "normal" on the thread's own stack, "altstack" on an alternate one,
 * "leaf" after a fault in the first instruction of a function that has no frame, "nested" in a handler that
 * interrupted a handler.
 */
#include "target.h"

FRAME static int leaf_fault(const volatile int *p)
{
	return *p;
}

FRAME static void block_in_handler(int sig)
{
	target_block();
}

FRAME static void raise_in_handler(int sig)
{
	pthread_kill(pthread_self(), SIGUSR1);
}

static void handle(int sig, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	if (sigaction(sig, &action, NULL))
		target_die("sigaction");
}

FRAME static void interrupted(int sig)
{
	pthread_kill(pthread_self(), sig);
}

FRAME static void normal(void)
{
	interrupted(SIGUSR1);
}

FRAME static void nested(void)
{
	interrupted(SIGUSR2);
}

FRAME static void altstack(void)
{
	static char room[65536];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};

	if (sigaltstack(&stack, NULL))
		target_die("sigaltstack");
	interrupted(SIGALRM);
}

FRAME static void leaf(void)
{
	leaf_fault(NULL);
}

int main(void)
{
	target_init();
	handle(SIGUSR1, block_in_handler, 0);
	handle(SIGUSR2, raise_in_handler, 0);
	handle(SIGALRM, block_in_handler, SA_ONSTACK);
	handle(SIGSEGV, block_in_handler, 0);
	target_start("normal", normal);
	target_start("nested", nested);
	target_start("altstack", altstack);
	target_start("leaf", leaf);
	target_ready();
	target_serve(NULL);
}
