/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_COMMANDS_H
#define STAKEOUT_CMD_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

/* `stakeout NAME …`. */
struct command {
	const char *name;
	char *called; /* in messages, getopt's too */
	int (*run)(int argc, char **argv);
	const char *about; /* one line of the help */
	bool keeps_rights; /* gives up needless ones itself, if at all */
};

/* In the order of the help; the first is meant where none is named. */
extern const struct command commands[];
extern const size_t ncommands;

/* NULL: there is none of that name. */
const struct command *command_find(const char *name);

/* The command whose name is most like the word, or NULL when none is. */
const struct command *command_like(const char *word);

#endif
