/* SPDX-License-Identifier: MIT */
/*
 * waits_astray: the thread "worker" waits again and again in a function whose return address leads to no code
 * meanwhile, and maps some memory each time, which is no code either. Question: any; the answer is how often it has
 * waited.
 */
/* build: -fno-omit-frame-pointer */
#include "waits.h"

#include <sys/mman.h>

enum { NAP_US = 4000, NOWHERE = 0x16 };

static atomic_ullong naps;

FRAME static void astray(void)
{
	volatile uintptr_t *back = (volatile uintptr_t *)__builtin_frame_address(0) + 1;
	uintptr_t saved = *back;

	*back = NOWHERE;
	waits_nap(NAP_US);
	*back = saved;
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		target_die("mmap");
	atomic_fetch_add(&naps, 1);
}

FRAME static void worker(void)
{
	target_arrived();
	for (;;)
		astray();
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
