/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_TRACE_CHILD_H
#define STAKEOUT_TESTS_TRACE_CHILD_H

#include "child.h"

#include <string.h>

#include "model/stack.h"
#include "target/target.h"

/* A child that waits in known functions, in this program's code, until it is told to run for a moment. */
struct trace_child {
	pid_t pid;
	int go[2], ran[2];
};

static struct trace_child trace_child_starting; /* a child is forked with what is here */

static __attribute__((noinline)) void waits_inside(void)
{
	char byte;

	while (read(trace_child_starting.go[0], &byte, 1) == 1)
		if (write(trace_child_starting.ran[1], "", 1) != 1)
			_exit(1);
	__asm__ volatile(""); /* or the calls would be jumps */
}

static __attribute__((noinline)) void waits_outside(void)
{
	waits_inside();
	__asm__ volatile("");
}

static inline void trace_child_run(const struct trace_child *child)
{
	char byte;

	assert_int_equal(write(child->go[1], "", 1), 1);
	assert_int_equal(read(child->ran[0], &byte, 1), 1);
}

static inline struct trace_child trace_child_start(void (*body)(void))
{
	assert_int_equal(pipe(trace_child_starting.go), 0);
	assert_int_equal(pipe(trace_child_starting.ran), 0);
	trace_child_starting.pid = child_start(body);
	trace_child_run(&trace_child_starting); /* it has come to its functions when it has run once */
	return trace_child_starting;
}

static inline void trace_child_finish(const struct trace_child *child)
{
	child_end(child->pid);
	for (int i = 0; i < 2; i++) {
		close(child->go[i]);
		close(child->ran[i]);
	}
}

#endif
