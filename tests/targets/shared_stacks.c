/* SPDX-License-Identifier: MIT */
/* shared_stacks: threads whose stacks lie side by side in one mapping, without guard pages. */
#include "target.h"

#include <sys/mman.h>

enum { THREADS = 50, STACK = 64 * 1024 };

static atomic_int there;

FRAME static void wait_here(void)
{
	atomic_fetch_add(&there, 1);
	target_block();
}

static void *sleeper(void *arg)
{
	wait_here();
	return arg;
}

int main(void)
{
	char *room = mmap(NULL, (size_t)THREADS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	target_init();
	pthread_attr_init(&attr);
	for (int i = 0; i < THREADS; i++) {
		pthread_attr_setstack(&attr, room + (size_t)i * STACK, STACK);
		errno = pthread_create(&thread, &attr, sleeper, NULL);
		if (errno)
			target_die("pthread_create");
	}
	while (atomic_load(&there) < THREADS)
		sched_yield();
	target_ready();
	target_serve(NULL);
}
