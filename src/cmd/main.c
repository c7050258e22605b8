/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"snapshot", cmd_snapshot},
	{"replay", cmd_replay},
	{"cache", cmd_cache},
	{"symbolize", cmd_symbolize},
	{"offcpu", cmd_offcpu},
};

/* `stakeout COMMAND …`; without a command's name the arguments are those of a snapshot: `stakeout PID…`. */
int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	return cmd_snapshot(argc, argv);
}
