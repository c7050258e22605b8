/* SPDX-License-Identifier: MIT */
#include "cmd/commands.h"

#include <string.h>

#include "cmd/cmd.h"
#include "cmd/likeness.h"

const struct command commands[] = {
	{"snapshot", "stakeout", cmd_snapshot, "what every thread of a process is doing (the default)", false},
	{"why", "stakeout why", cmd_why, "what each thread waits for, who holds it, and deadlocks", true},
	{"watch", "stakeout watch", cmd_watch, "which threads are stuck, and which only slow: several looks, compared", false},
	{"offcpu", "stakeout offcpu", cmd_offcpu, "where threads wait over time, for how long, and who woke them", true},
	{"replay", "stakeout replay", cmd_replay, "a snapshot that was saved, on any machine", false},
	{"symbolize", "stakeout symbolize", cmd_symbolize, "functions, files and lines of addresses, as addr2line does", false},
	{"doctor", "stakeout doctor", cmd_doctor, "what works on this machine, what does not, and the command that helps", false},
	{"setup", "stakeout setup", cmd_setup, "lets a group use it on all processes, without sudo", true},
	{"cache", "stakeout cache", cmd_cache, "what is kept between runs: show or clear it", false},
	{"help", "stakeout help", cmd_help, "this list, or the options of a command", false},
	{"version", "stakeout version", cmd_version, "version and built-in features", false},
};
const size_t ncommands = sizeof(commands) / sizeof(commands[0]);

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < ncommands; i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

const struct command *command_like(const char *word)
{
	struct likeness likeness = {.word = word};

	for (size_t i = 0; i < ncommands; i++)
		likeness_try(&likeness, commands[i].name);
	return likeness.best ? command_find(likeness.best) : NULL;
}
