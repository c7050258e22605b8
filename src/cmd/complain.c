/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "proc/process.h"
#include "report/text_format.h"

void cmd_complain(const char *words)
{
	const struct text text = {.out = stderr};

	fputs("stakeout: ", stderr);
	text_untrusted(&text, words);
	fputc('\n', stderr);
}

int cmd_misused(const char *command, const char *what)
{
	if (what[0])
		fprintf(stderr, "%s: %s\n", command, what);
	fprintf(stderr, "Try '%s --help'.\n", command);
	return EXIT_USAGE;
}

int cmd_printed(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_COMPLETE;
	fprintf(stderr, "stakeout: the output could not be written: %s\n", strerror(errno));
	return EXIT_NOTHING;
}

int cmd_check_proc(void)
{
	struct err err = {0};

	if (process_check_mounted(&err) == 0)
		return -1;
	cmd_complain(err.msg);
	return EXIT_NOTHING;
}
