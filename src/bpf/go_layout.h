/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_GO_LAYOUT_H
#define STAKEOUT_BPF_GO_LAYOUT_H

/*
 * What Go's runtime keeps of goroutines and threads, as far as a walk has to know when a function has changed stacks.
 * Nothing read there is believed unless a goroutine and its thread point at each other. Shared by the BPF program and
 * the snapshot's unwinder.
 */

enum {
	/* struct g, since Go 1.9. Assembly code and debuggers know these offsets. */
	GO_G_STACK_LOW = 0,
	GO_G_STACK_HIGH = 8,
	GO_G_M = 48, /* the thread that runs it */
	GO_G_SP = 56,
	GO_G_PC = 64,
	GO_G_LR_OLD = 96,
	GO_G_FP_OLD = 104,
	GO_G_LR = 88,
	GO_G_FP = 96,

	/*
	 * Where a program with C code keeps the goroutine as well, from the register that tells C's threads apart. This is
	 * the place of a program's only variable of that kind; nothing says that it is the only one.
	 */
	GO_X86_TLS_BELOW = 8,
	GO_ARM_TLS_ABOVE = 16,

	/* struct m, a thread. OLD: until a word was dropped from the saved registers, which it has before this one. */
	GO_M_G0 = 0, /* the goroutine of the thread's own stack */
	GO_M_CURG_OLD = 192,
	GO_M_CURG = 184, /* the goroutine that it works for */

	/*
	 * Where asmcgocall keeps the goroutine and how far below the top of its stack it was called: from its sp. OLD:
	 * when it still left room for the arguments of Windows. Without a goroutine the thread was on its own stack
	 * already, and its sp is kept instead.
	 */
	GO_X86_C_GOROUTINE_OLD = 48,
	GO_X86_C_DEPTH_OLD = 40,
	GO_X86_C_GOROUTINE = 8,
	GO_X86_C_DEPTH = 0,
	GO_ARM_C_GOROUTINE = 0,
	GO_ARM_C_DEPTH = 8,
	GO_C_DEPTH_MAX = 1 << 30, /* no stack is larger */
	GO_C_NEAR = 128,          /* bytes: no farther from there is the sp that it keeps */

	/*
	 * Where cgocallback keeps the sp that the thread's own goroutine had, from its own on the thread's stack, which
	 * takes its place: the runtime's unwindm() knows these, too.
	 */
	GO_X86_CALLBACK_SAVED = 0,
	GO_ARM_CALLBACK_SAVED = 16,
};

#endif
