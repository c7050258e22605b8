/* SPDX-License-Identifier: MIT */
/* Whether a signal handler, or an io_uring, may end what a thread waits for: then no other thread is needed for that. */
#include <signal.h>
#include <string.h>

#include "capture/besides.h"
#include "capture/take.h"

/* Many programs have handlers for these, but nobody sends them, or only the kernel does, for a fault of the thread itself. */
static bool is_seldom_sent(int sig)
{
	static const int signals[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, SIGPIPE, SIGXFSZ, 32, 33 /* glibc's own */};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (signals[i] == sig)
			return true;
	return false;
}

/* By hand, at a terminal: a program that waits for no other signal does not wait for one. */
static bool is_by_hand(int sig)
{
	return sig == SIGINT || sig == SIGQUIT || sig == SIGTSTP || sig == SIGCONT || sig == SIGWINCH;
}

/* Whether it has a part of memory in common with the kernel by which that works for it. */
static bool has_ring(const struct snapshot *snap)
{
	for (size_t i = 0; i < snap->maps.len; i++)
		if (strcmp(snap->maps.data[i].path, "anon_inode:[io_uring]") == 0 || strcmp(snap->maps.data[i].path, "/[aio]") == 0)
			return true;
	return false;
}

/* Who may end a wait and is no process that has the other end. Signals that are blocked count, too: they may not be in another thread. */
static void gather_of_process(struct besides *b)
{
	struct task_status status;
	const bool known = process_status(&b->capture->target->process, &status) == 0;
	bool has_handler = !known, has_async_handler = !known || has_ring(b->snap);

	for (int sig = 1; known && sig <= 64; sig++)
		if (status.caught >> (sig - 1) & 1 && !is_seldom_sent(sig)) {
			has_handler = true;
			has_async_handler |= !is_by_hand(sig);
		}
	for (size_t i = 0; i < b->snap->threads.len; i++) {
		b->snap->threads.data[i].facts.has_handler = has_handler;
		b->snap->threads.data[i].facts.has_async_handler = has_async_handler;
	}
}

/* Also of a process all of whose threads wait for locks in memory: another process may wait for one of its handlers. */
int gather_handlers(struct besides *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		gather_of_process(&all[i]);
	return 0;
}
