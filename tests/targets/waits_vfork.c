/* SPDX-License-Identifier: MIT */
/*
 * waits_vfork: the thread "worker" waits again and again for a child of the C library's vfork(), which naps. Question: any;
 * the answer is how often it has.
 */
#include "waits.h"

#include <sys/wait.h>

enum { NAP_US = 4000 };

static atomic_ullong naps;

FRAME static void vforks(void)
{
	pid_t pid = vfork();

	if (pid < 0)
		target_die("vfork");
	if (!pid) {
		waits_nap(NAP_US);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	atomic_fetch_add(&naps, 1);
}

FRAME static void worker(void)
{
	NO_FRAME_POINTER();
	target_arrived();
	for (;;)
		vforks();
}

static void answer(const char *question)
{
	printf("%llu\n", atomic_load(&naps));
}

int main(void)
{
	target_init();
	target_start("worker", worker);
	target_ready();
	target_serve(answer);
}
