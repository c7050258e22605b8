/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_CMD_H
#define STAKEOUT_CMD_CMD_H

/* The exit codes of every command; documented in stakeout(1). */
enum exit_code {
	EXIT_COMPLETE = 0,   /* every stack is whole */
	EXIT_NOTHING = 1,    /* nothing was captured */
	EXIT_USAGE = 2,	     /* wrong usage */
	EXIT_INCOMPLETE = 3, /* some stack or process is missing or cut short; the output says which and why */
	EXIT_DEADLOCK = 4,   /* `stakeout why` or `stakeout watch` has found one */
};

/* argv[0] is how the command is called in its messages: "stakeout offcpu". Each has its own file, and its options. */
int cmd_snapshot(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_cache(int argc, char **argv);
int cmd_symbolize(int argc, char **argv);
int cmd_offcpu(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_setup(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* Every command takes it: main.c does. */
#define DEBUG_HELP "      --debug            say on the standard error what is tried, how it ends, and when\n"

/* Says what is wrong with the arguments ("": getopt has said it already) and where help is; returns EXIT_USAGE. */
int cmd_misused(const char *command, const char *what);

/* -1 to go on; else the exit code, when /proc is missing, which was told. */
int cmd_check_proc(void);

/* The exit code of a command that has printed all it was asked for: it fails if that cannot be written. */
int cmd_printed(void);

/* Says it on the standard error, behind the program's name. It may hold names that a target has chosen. */
void cmd_complain(const char *words);

#endif
