/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_CHILD_H
#define STAKEOUT_TESTS_CHILD_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A child process for tests to look at: it runs `body` once it has told that it is there. */
static inline pid_t child_start(void (*body)(void))
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		close(ready[1]);
		body();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static inline void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static inline void child_sleeps(void)
{
	for (;;)
		pause();
}

static inline void child_spins(void)
{
	for (volatile unsigned n = 0;; n++)
		;
}

#endif
