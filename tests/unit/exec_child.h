/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_EXEC_CHILD_H
#define STAKEOUT_TESTS_EXEC_CHILD_H

#include "child.h"

#include "target/target.h"

/* A child that executes another program when it is told to: one that answers, so that it is known to run. */
struct exec_child {
	pid_t pid;
	int in[2], out[2];
};

static struct exec_child exec_child_starting; /* a child is forked with what is here */

static void exec_child_body(void)
{
	char byte;

	dup2(exec_child_starting.in[0], STDIN_FILENO);
	dup2(exec_child_starting.out[1], STDOUT_FILENO);
	close(exec_child_starting.in[1]);
	if (read(STDIN_FILENO, &byte, 1) == 1)
		execlp("cat", "cat", "-", NULL);
	_exit(1);
}

static inline struct exec_child exec_child_start(void)
{
	assert_int_equal(pipe(exec_child_starting.in), 0);
	assert_int_equal(pipe(exec_child_starting.out), 0);
	exec_child_starting.pid = child_start(exec_child_body);
	return exec_child_starting;
}

/* The first byte lets it go on; the second comes back from the new program. */
static inline void exec_child_exec(const struct exec_child *child)
{
	char answer = 0;

	assert_int_equal(write(child->in[1], "ga", 2), 2);
	assert_int_equal(read(child->out[0], &answer, 1), 1);
	assert_int_equal(answer, 'a');
}

static inline void exec_child_end(const struct exec_child *child)
{
	child_end(child->pid);
	for (int i = 0; i < 2; i++) {
		close(child->in[i]);
		close(child->out[i]);
	}
}

/* What tells its programs apart; 0: it has ended. */
static inline uint64_t generation_of(pid_t pid)
{
	struct target *target;
	uint64_t generation;

	if (target_open(pid, NULL, &target) < 0)
		return 0;
	generation = target->generation;
	target_close(target);
	return generation;
}

#endif
