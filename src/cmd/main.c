/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/commands.h"

/* `stakeout COMMAND …`; without a command's name the arguments are those of a snapshot: `stakeout PROCESS…`. */
int main(int argc, char **argv)
{
	const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;

	if (command) {
		argv[1] = command->called;
		return command->run(argc - 1, argv + 1);
	}
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return cmd_help(1, argv);
	if (argc > 0)
		argv[0] = commands[0].called;
	return cmd_snapshot(argc, argv);
}
