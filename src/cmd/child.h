/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_CHILD_H
#define STAKEOUT_CMD_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* A command that waits to be let go, so that nothing of it is missed. */
struct child {
	pid_t pid;  /* 0: there is none */
	int go;     /* a byte lets the command start; closing it ends it */
	int failed; /* gives an errno when it could not be executed, and ends when it is */
	bool asked; /* to end */
	bool ended;
};

#define CHILD_NONE ((struct child){.go = -1, .failed = -1})

/* `mask` is what the command has its signals blocked with. */
int child_start(struct child *child, char **command, const sigset_t *mask, struct err *err);
int child_release(struct child *child, const char *name, struct err *err);
bool child_has_ended(struct child *child);

/* Asks it to end, once: many programs take a second signal as an order to leave everything as it is. */
void child_terminate(struct child *child);

/* Waits until it has: it may have much to put away. */
void child_wait(struct child *child);

#endif
