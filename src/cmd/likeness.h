/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_LIKENESS_H
#define STAKEOUT_CMD_LIKENESS_H

/* What somebody may have meant who has mistyped a word, or written only the start of it. */
struct likeness {
	const char *word;
	const char *best; /* of those that were tried; NULL: none is like it */
	unsigned distance; /* of the best: letters added, left out, replaced or swapped */
};

void likeness_try(struct likeness *likeness, const char *candidate);

#endif
