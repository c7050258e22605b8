/* SPDX-License-Identifier: MIT */
/*
 * vfork_parent: the main thread is in state D, because it waits for the child of a vfork(), which serves instead.
 * "ready PARENT spinner=TID child=CHILD": "spinner" keeps a processor busy beside it.
 * vfork_parent heir: "ready PARENT other=PID child=CHILD": meanwhile a thread has ended, and left its own child to the main thread.
 * vfork_parent lock: "ready PARENT sleeper=TID child=CHILD": the child waits for a mutex that the main thread has.
 */
#include "target.h"

#include <stdbool.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t other; /* the child of the thread that ends */
static atomic_int may_end;

FRAME static void spinner(void)
{
	target_arrived();
	for (;;)
		__asm__ volatile("");
}

/* The child ends when nobody has the other end of the pipe any more: PR_SET_PDEATHSIG would have it end with the thread. */
static void leave_child(void)
{
	int ends[2];
	char byte;

	if (pipe(ends) < 0)
		target_die("pipe");
	other = fork();
	if (other < 0)
		target_die("fork");
	if (other == 0) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) < 0);
	}
	close(ends[0]);
	target_arrived();
	while (!atomic_load(&may_end))
		sched_yield();
}

/* The thread is gone only after its child was handed over. */
static void let_it_end(void)
{
	char path[64];

	atomic_store(&may_end, 1);
	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)getppid(), (int)target_threads[0].tid);
	while (access(path, F_OK) == 0)
		sched_yield();
}

FRAME static void wait_for_child(bool locks)
{
	char line[64];
	int len;

	/* Formatted before the vfork: the child shares our memory, and should do as little as it can with it. */
	len = snprintf(line, sizeof(line), "ready %d %s=%d", (int)getpid(), other ? "other" : target_threads[0].name,
		       other ? (int)other : (int)target_threads[0].tid);
	switch (vfork()) {
	case -1:
		target_die("vfork");
		break;
	case 0:
		target_init();
		if (other)
			let_it_end();
		len += snprintf(line + len, sizeof(line) - (size_t)len, " child=%d\n", (int)target_gettid());
		if (write(STDOUT_FILENO, line, (size_t)len) < 0)
			_exit(1);
		if (locks)
			pthread_mutex_lock(&lock);
		target_serve(NULL);
	}
}

int main(int argc, char **argv)
{
	const bool locks = argc > 1 && strcmp(argv[1], "lock") == 0;

	target_init();
	if (argc > 1 && !locks)
		target_start("leaver", leave_child);
	else
		target_start(locks ? "sleeper" : "spinner", locks ? target_block : spinner);
	if (locks)
		pthread_mutex_lock(&lock);
	while (!atomic_load(&target_threads[0].tid))
		sched_yield();
	wait_for_child(locks);
	return 0;
}
