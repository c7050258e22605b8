/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"

static const struct {
	const char *name;
	char *called; /* for getopt's messages too */
	int (*run)(int argc, char **argv);
} commands[] = {
	{"snapshot", "stakeout", cmd_snapshot},
	{"replay", "stakeout replay", cmd_replay},
	{"cache", "stakeout cache", cmd_cache},
	{"symbolize", "stakeout symbolize", cmd_symbolize},
	{"offcpu", "stakeout offcpu", cmd_offcpu},
};

/* `stakeout COMMAND …`; without a command's name the arguments are those of a snapshot: `stakeout PID…`. */
int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0) {
			argv[1] = commands[i].called;
			return commands[i].run(argc - 1, argv + 1);
		}
	if (argc > 0)
		argv[0] = commands[0].called;
	return cmd_snapshot(argc, argv);
}
