/* SPDX-License-Identifier: MIT */
/*
 * lost_cfa: worker calls lost, whose unwind information finds its frame by a register that calls do not keep, and which
 * calls target_block.
 */
#include "target.h"

void lost(void (*callee)(void));

#ifdef __x86_64__
__asm__(".text\n"
	".globl lost\n"
	".type lost, @function\n"
	"lost:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	"mov %rsp, %rcx\n"
	".cfi_def_cfa rcx, 16\n"
	"call *%rdi\n"
	"pop %rbp\n"
	"ret\n"
	".cfi_endproc\n"
	".size lost, .-lost\n");
#else
__asm__(".text\n"
	".globl lost\n"
	".type lost, %function\n"
	"lost:\n"
	".cfi_startproc\n"
	"stp x29, x30, [sp, #-16]!\n"
	"mov x9, sp\n"
	".cfi_def_cfa x9, 16\n"
	"blr x0\n"
	"ldp x29, x30, [sp], #16\n"
	"ret\n"
	".cfi_endproc\n"
	".size lost, .-lost\n");
#endif

FRAME static void worker(void)
{
	lost(target_block);
}

int main(void)
{
	target_init();
	target_start("worker", worker);
	target_ready();
	target_serve(NULL);
}
