/* SPDX-License-Identifier: MIT */
/*
 * waits_brief: processes that nobody has time to read. Question: "COUNT PROGRAM [ARGUMENT]"; so many processes execute that,
 * one after the other, and each has ended before the answer comes: their pids. With the argument "nap" this program sleeps
 * in brief_nap() for 3 ms, and ends; with "stay" when it has read a line.
 */
/* build: -fomit-frame-pointer */
#include "waits.h"

#include <sys/wait.h>

enum { NAP_US = 3000, MAX = 64, LINE = 4096 };

FRAME static void brief_nap(void)
{
	NO_FRAME_POINTER();
	waits_nap(NAP_US);
}

static pid_t run(char *program, char *argument)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(program, program, argument, NULL);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		target_die("fork");
	return pid;
}

static void answer(char *line)
{
	int count = atoi(strtok(line, " \n"));
	char *program = strtok(NULL, " \n"), *argument = strtok(NULL, " \n");

	for (int i = 0; i < count && i < MAX; i++)
		printf("%s%d", i ? " " : "", (int)run(program, argument));
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[LINE];

	if (argc > 1 && !strcmp(argv[1], "nap")) {
		brief_nap();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "stay"))
		return !fgets(line, sizeof(line), stdin);
	target_init();
	target_ready();
	while (fgets(line, sizeof(line), stdin))
		answer(line);
	return 0;
}
