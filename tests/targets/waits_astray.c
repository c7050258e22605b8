/* SPDX-License-Identifier: MIT */
/*
 * waits_astray: the thread "worker" waits again and again in a function whose return address leads to no code
 * meanwhile, and maps some memory each time, which is no code either; "maker" waits in a function that code calls which it
 * has just made, in pages that can be written and executed. Question: any; the answer is how often the worker has waited.
 */
/* build: -fno-omit-frame-pointer */
#include "jit_code.h"
#include "waits.h"

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

FRAME static void called_by_made_code(void)
{
	waits_nap(NAP_US);
	__asm__ volatile("");
}

FRAME static void maker(void)
{
	target_arrived();
	for (;;) {
		uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			target_die("mmap");
		memcpy(page, jit_framed, sizeof(jit_framed));
		__builtin___clear_cache((char *)page, (char *)page + sizeof(jit_framed));
		((jit_function)(uintptr_t)page)(called_by_made_code);
	}
}

static void answer(const char *question)
{
	printf("%llu\n", atomic_load(&naps));
}

int main(void)
{
	target_init();
	target_start("worker", worker);
	target_start("maker", maker);
	target_ready();
	target_serve(answer);
}
