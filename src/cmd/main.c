/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/debug.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "privilege/caller.h"
#include "privilege/capabilities.h"

/*
 * --debug is every command's, and stands anywhere before what belongs to somebody else ("--", a command to run): it is
 * taken out before options are read. Returns how many arguments are left.
 */
static int take_debug(int argc, char **argv)
{
	int left = 0;

	for (int i = 0; i < argc; i++) {
		if (i > 0 && strcmp(argv[i], "--") == 0) {
			while (i < argc)
				argv[left++] = argv[i++];
		} else if (i > 0 && strcmp(argv[i], "--debug") == 0) {
			debug_begin();
		} else {
			argv[left++] = argv[i];
		}
	}
	argv[left] = NULL;
	return left;
}

/* `stakeout COMMAND …`; without a command's name the arguments are those of a snapshot: `stakeout PROCESS…`. */
int main(int argc, char **argv)
{
	const struct command *command;

	caller_act();
	argc = take_debug(argc, argv);
	command = argc > 1 ? command_find(argv[1]) : NULL;

	if (!command || !command->keeps_rights)
		capabilities_drop_needless();
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
