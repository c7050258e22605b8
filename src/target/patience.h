/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_PATIENCE_H
#define STAKEOUT_TARGET_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/notes.h"
#include "privilege/broker.h"

/*
 * How long is waited for what may never answer, in all: memory and files with a server behind them. It is the whole
 * program's, as its signals are, and so is this state: Ctrl-C must reach every thread that waits. Any thread may call.
 */

enum { PATIENCE_DEFAULT_MS = 2000 };

void patience_set(uint64_t ns);

/* From now on nothing is waited for. To be called by a signal handler, too. */
void patience_interrupt(void);
bool patience_is_interrupted(void);

/* An interrupt is over: to be called when nobody waits. */
void patience_resume(void);

/* From now on nothing is waited for longer than by default. */
void patience_hurry(void);

/* What is left, in nanoseconds. */
uint64_t patience_left(void);

/*
 * Waits until the descriptor can be read, for as long as there is patience. 0, or -ETIMEDOUT: it has run out, or was
 * interrupted.
 */
int patience_wait(int fd);

/* What did not answer, as a sentence for the report. Each is kept once. */
void patience_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Adds the complaints so far; false when there are none. */
bool patience_tell(struct notes *out);

/* All is as it was at the start, and what was opened is closed: to be called when nobody waits, or may interrupt. */
void patience_reset(void);

/* A broker tells its parser the complaints. */
void patience_errand_add(struct parser_job *job);

#endif
