/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/library.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "kernel/task_iter.h"

static const char usage[] =
	"Usage: stakeout [OPTION…] PROCESS…\n"
	"       stakeout COMMAND …\n"
	"\n"
	"Shows what threads of running processes do, and what they wait for. PROCESS is a pid or a name.\n"
	"\n"
	"Commands:\n";

static const char examples[] =
	"\n"
	"Examples:\n"
	"  stakeout nginx                     every thread of the process of that name\n"
	"  stakeout -t 4712                   one thread\n"
	"  stakeout --brief 4711              a line for each stack\n"
	"  stakeout --state R,D 4711          only threads that run, or cannot be interrupted\n"
	"  stakeout --json 4711               for programs\n"
	"  stakeout watch 4711                is it stuck, or only slow?\n"
	"  stakeout offcpu -d 10 -p nginx     ten seconds of its waits\n"
	"\n"
	"`stakeout help COMMAND` lists the options of a command: `stakeout help snapshot` those of the\n"
	"default one. The manual is stakeout(1), with a page for each command: stakeout-offcpu(1).\n";

static int show_overview(void)
{
	fputs(usage, stdout);
	for (size_t i = 0; i < ncommands; i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].about);
	fputs(examples, stdout);
	return cmd_printed();
}

static int show_command(char **argv)
{
	const struct command *command = command_find(argv[1]), *like = command ? NULL : command_like(argv[1]);
	char *asked[] = {command ? command->called : NULL, "--help", NULL};

	if (command)
		return command->run(2, asked);
	fprintf(stderr, "%s: there is no command '%s'", argv[0], argv[1]);
	if (like)
		fprintf(stderr, "; did you mean '%s'?", like->name);
	fputc('\n', stderr);
	return cmd_misused("stakeout", "");
}

/* Whether the only argument is one that all commands have. */
static bool asks_for_help(int argc, char **argv)
{
	return argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

int cmd_help(int argc, char **argv)
{
	if (argc < 2 || asks_for_help(argc, argv))
		return show_overview();
	if (argc > 2)
		return cmd_misused(argv[0], "give one command");
	return show_command(argv);
}

int cmd_version(int argc, char **argv)
{
	if (asks_for_help(argc, argv))
		printf("Usage: stakeout version\n\nShows the version, and the features that were built in.\n");
	else if (argc > 1)
		return cmd_misused(argv[0], "it takes nothing");
	else
		printf("stakeout %s\nfeatures: %cbpf %cdebuginfod +demangle; architectures: x86_64 aarch64%s\n", STAKEOUT_VERSION,
		       task_iter_built_in() ? '+' : '-', library_loading_built_in() ? '+' : '-',
		       library_loading_built_in() ? "" : "; one static file");
	return cmd_printed();
}
