/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_BACKGROUND_H
#define STAKEOUT_BASE_BACKGROUND_H

/*
 * Does the work in a thread of lower priority, and returns when it is done: whoever else wants a CPU, such as the process
 * that is looked at, gets it first. What the work starts on other cores has that priority, too; the caller keeps its own.
 */
void background_run(void (*work)(void *arg), void *arg);

#endif
