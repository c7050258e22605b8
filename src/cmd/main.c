/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/*
 * A file that is cut short while it is mapped raises SIGBUS where it ends now: a package being upgraded under us, or a
 * hostile target. Zeroes in its place make what was read there damaged, which every reader of files can stand.
 */
static void give_zero_page(int sig, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)info->si_addr / page * page;

	if (info->si_code != BUS_ADRERR || mmap((void *)at, page, PROT_READ | PROT_WRITE,
						MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		signal(SIGBUS, SIG_DFL);
}

/* `stakeout COMMAND …`; without a command's name the arguments are those of a snapshot: `stakeout PID…`. */
int main(int argc, char **argv)
{
	const struct sigaction on_bus_error = {.sa_sigaction = give_zero_page, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &on_bus_error, NULL);
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0) {
			argv[1] = commands[i].called;
			return commands[i].run(argc - 1, argv + 1);
		}
	if (argc > 0)
		argv[0] = commands[0].called;
	return cmd_snapshot(argc, argv);
}
