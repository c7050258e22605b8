/* SPDX-License-Identifier: MIT */
/*
 * contexts malloc|mmap|landing: the return address of the outermost function is the start of another one, that no
 * call has left there. worker runs on_context on a stack of makecontext(), which was allocated so, or jumps to it on its
 * own, with the address of landing, which follows padding and says that it is the outermost.
 */
#include "target.h"

#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_SIZE = 256 << 10 };

static const char *how;

FRAME __attribute__((used)) void on_context(void)
{
	target_block();
}

void landing(void);
void jump_to_context(void) __attribute__((noreturn));

#ifdef __x86_64__
__asm__(".section .text.landing, \"ax\"\n"
	".p2align 4\n"
	".fill 16, 1, 0x90\n"
	".globl landing\n"
	".type landing, @function\n"
	"landing:\n"
	".cfi_startproc\n"
	".cfi_undefined rip\n"
	"ud2\n"
	".cfi_endproc\n"
	".size landing, .-landing\n"
	".globl jump_to_context\n"
	".type jump_to_context, @function\n"
	"jump_to_context:\n"
	".cfi_startproc\n"
	"and $-16, %rsp\n"
	"lea landing(%rip), %rax\n"
	"push %rax\n"
	"jmp on_context\n"
	".cfi_endproc\n"
	".size jump_to_context, .-jump_to_context\n"
	".text\n");
#else
__asm__(".section .text.landing, \"ax\"\n"
	".p2align 4\n"
	".fill 4, 4, 0xd503201f\n"
	".globl landing\n"
	".type landing, %function\n"
	"landing:\n"
	".cfi_startproc\n"
	".cfi_undefined x30\n"
	"brk #1\n"
	".cfi_endproc\n"
	".size landing, .-landing\n"
	".globl jump_to_context\n"
	".type jump_to_context, %function\n"
	"jump_to_context:\n"
	".cfi_startproc\n"
	"adr x30, landing\n"
	"b on_context\n"
	".cfi_endproc\n"
	".size jump_to_context, .-jump_to_context\n"
	".text\n");
#endif

FRAME static void worker(void)
{
	static ucontext_t context, back;
	void *stack;

	if (strcmp(how, "landing") == 0)
		jump_to_context();
	if (strcmp(how, "malloc") == 0)
		stack = malloc(STACK_SIZE);
	else
		stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!stack || stack == MAP_FAILED || getcontext(&context) != 0)
		target_die("stack");
	context.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_SIZE};
	context.uc_link = &back;
	makecontext(&context, on_context, 0);
	swapcontext(&back, &context);
}

int main(int argc, char **argv)
{
	target_init();
	how = argc > 1 ? argv[1] : "malloc";
	target_start("worker", worker);
	target_ready();
	target_serve(NULL);
}
