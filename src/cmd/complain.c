/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/cmd.h"
#include "report/text_format.h"

void cmd_complain(const char *words)
{
	const struct text text = {.out = stderr};

	fputs("stakeout: ", stderr);
	text_untrusted(&text, words);
	fputc('\n', stderr);
}
