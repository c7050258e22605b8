/* SPDX-License-Identifier: MIT */
/*
 * vfork_parent: the main thread is in state D, because it waits for the child of a vfork(), which serves instead.
 * "ready PARENT spinner=TID child=CHILD": "spinner" keeps a processor busy beside it.
 */
#include "target.h"

FRAME static void spinner(void)
{
	target_arrived();
	for (;;)
		__asm__ volatile("");
}

FRAME static void wait_for_child(void)
{
	char line[64];
	int len;

	/* Formatted before the vfork: the child shares our memory, and should do as little as it can with it. */
	len = snprintf(line, sizeof(line), "ready %d spinner=%d", (int)getpid(), (int)target_threads[0].tid);
	switch (vfork()) {
	case -1:
		target_die("vfork");
		break;
	case 0:
		target_init();
		len += snprintf(line + len, sizeof(line) - (size_t)len, " child=%d\n", (int)target_gettid());
		if (write(STDOUT_FILENO, line, (size_t)len) < 0)
			_exit(1);
		target_serve(NULL);
	}
}

int main(void)
{
	target_init();
	target_start("spinner", spinner);
	while (!atomic_load(&target_threads[0].tid))
		sched_yield();
	wait_for_child();
	return 0;
}
