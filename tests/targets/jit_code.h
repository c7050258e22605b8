/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_JIT_CODE_H
#define STAKEOUT_TESTS_JIT_CODE_H

/* Functions made at run time. Each calls the function that is its argument. */

#include "target.h"

#include <sys/mman.h>

typedef void (*jit_callee)(void);
typedef void (*jit_function)(jit_callee);

/* Keeps a frame record, so that it can be walked without unwind tables. */
#ifdef __x86_64__
static const uint8_t jit_framed[] = {
	0x55,             /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp,%rbp */
	0xff, 0xd7,       /* call *%rdi */
	0x5d,             /* pop %rbp */
	0xc3,             /* ret */
};
#else
static const uint32_t jit_framed[] = {
	0xa9bf7bfd, /* stp x29,x30,[sp,#-16]! */
	0x910003fd, /* mov x29,sp */
	0xd63f0000, /* blr x0 */
	0xa8c17bfd, /* ldp x29,x30,[sp],#16 */
	0xd65f03c0, /* ret */
};
#endif

/* Clears the frame pointer: only its unwind table tells where the caller is. */
#ifdef __x86_64__
static const uint8_t jit_frameless[] = {
	0x55,                   /* push %rbp */
	0x31, 0xed,             /* xor %ebp,%ebp */
	0x48, 0x83, 0xec, 0x20, /* sub $0x20,%rsp */
	0xff, 0xd7,             /* call *%rdi */
	0x48, 0x83, 0xc4, 0x20, /* add $0x20,%rsp */
	0x5d,                   /* pop %rbp */
	0xc3,                   /* ret */
};
#else
static const uint32_t jit_frameless[] = {
	0xd100c3ff, /* sub sp,sp,#0x30 */
	0xf90007fe, /* str x30,[sp,#8] */
	0xf9000bfd, /* str x29,[sp,#16] */
	0xaa1f03fd, /* mov x29,xzr */
	0xd63f0000, /* blr x0 */
	0xf9400bfd, /* ldr x29,[sp,#16] */
	0xf94007fe, /* ldr x30,[sp,#8] */
	0x9100c3ff, /* add sp,sp,#0x30 */
	0xd65f03c0, /* ret */
};
#endif

/* A page of executable memory of its own with the code at its start. */
__attribute__((unused)) static uint8_t *jit_place(const void *code, size_t len)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		target_die("mmap");
	memcpy(page, code, len);
	__builtin___clear_cache((char *)page, (char *)page + len);
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0)
		target_die("mprotect");
	return page;
}

#endif
