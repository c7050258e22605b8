/* SPDX-License-Identifier: MIT */
/*
 * waits_rows: a program with more than a million rows of unwind information, whose thread "worker" waits again and
 * again below the last function that they describe. Question: any; the answer is how often.
 */
/* build: -fomit-frame-pointer */
#include "waits.h"

enum { NAP_US = 4000 };

static atomic_ullong naps;

void last_of_many(void (*callback)(void));

/* 60,000 functions of 18 rows each; nobody calls them. Then one that calls. */
#if defined(__x86_64__)
#define GROW                "push %rax\n .cfi_adjust_cfa_offset 8\n"
#define SHRINK              "pop %rax\n .cfi_adjust_cfa_offset -8\n"
#define RETURN              "ret\n"
#define CALL_FIRST_ARGUMENT "call *%rdi\n"
#elif defined(__aarch64__)
#define GROW                "sub sp, sp, #16\n .cfi_adjust_cfa_offset 16\n"
#define SHRINK              "add sp, sp, #16\n .cfi_adjust_cfa_offset -16\n"
#define RETURN              "ret\n"
#define CALL_FIRST_ARGUMENT "str x30, [sp]\n .cfi_offset 30, -16\n blr x0\n ldr x30, [sp]\n .cfi_restore 30\n"
#endif

__asm__(".text\n"
	".rept 60000\n"
	".cfi_startproc\n" GROW GROW GROW GROW GROW GROW GROW GROW GROW SHRINK SHRINK SHRINK SHRINK SHRINK SHRINK SHRINK
		SHRINK SHRINK RETURN ".cfi_endproc\n"
	".endr\n"
	".globl last_of_many\n"
	".type last_of_many, %function\n"
	"last_of_many:\n"
	".cfi_startproc\n" GROW CALL_FIRST_ARGUMENT SHRINK RETURN ".cfi_endproc\n"
	".size last_of_many, . - last_of_many\n");

FRAME static void wait_below(void)
{
	NO_FRAME_POINTER();
	waits_nap(NAP_US);
	atomic_fetch_add(&naps, 1);
}

FRAME static void worker(void)
{
	target_arrived();
	for (;;)
		last_of_many(wait_below);
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
