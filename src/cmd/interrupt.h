/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_INTERRUPT_H
#define STAKEOUT_CMD_INTERRUPT_H

/*
 * Ctrl-C: the first makes us stop waiting for others and show what there is, the second ends us. Where SIGINT is ignored,
 * as in the background of a script, it stays so.
 */
void interrupt_catch(void);

/* The first was seen otherwise: the next one ends us. */
void interrupt_let_end(void);

#endif
