/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_PARSING_H
#define STAKEOUT_CMD_PARSING_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "symbol/module_symbols.h"
#include "target/file_errands.h"

/*
 * Work in a process without rights (privilege/broker.h), as commands want it: with all errands, an outcome that comes back,
 * and a report that the parser writes to memory and this process prints. So a parser that dies has printed nothing.
 */

/* In memory that both share. The parser may have been made to write anything there. */
struct parsing_outcome {
	int rc;
	bool incomplete; /* something is missing in the report */
	bool deadlock;   /* and this is in it */
	struct err err;
	struct err sandbox; /* what rights it could not give up */
};

struct parsing {
	/* In the parser. `report` may be written to; what is in it is printed when parsing_hand_over() is called. */
	int (*work)(void *arg, struct parsing *parsing, struct err *err);
	void *arg;
	/* In the broker: copies the report, which begins at the descriptor's position. May be NULL. */
	int (*print)(void *arg, int report_fd, struct err *err);

	int keep_fd;             /* that the parser may use, beside 0, 1 and 2; 0: none */
	struct file_scope files; /* which processes it is about */
	struct symbol_options symbols;

	FILE *report;
	struct parsing_outcome *outcome;
	bool printed; /* in the broker */
	struct err print_error;
};

/*
 * 0 and what the parser left in parsing->outcome (for parsing_end()); else -errno and a sentence: -EOWNERDEAD when the
 * parser has died. parsing->printed tells whether its report was handed over before.
 */
int parsing_run(struct parsing *parsing, struct err *err);
void parsing_end(struct parsing *parsing);

/* Why there are no names, for the report, when parsing_run() has failed with this error. */
enum { PARSING_WORDS = 520 };
void parsing_explain(const struct err *why, char out[static PARSING_WORDS]);

/* In the parser: has the report printed now. What follows is no longer waited for by whoever reads it. */
int parsing_hand_over(struct parsing *parsing, struct err *err);

#endif
