/* SPDX-License-Identifier: MIT */
#include "cmd/download_line.h"

#include <string.h>

#include "base/clock.h"
#include "report/text_format.h"

enum {
	REST = NS_PER_S / 10, /* before it is written for the first time, and from one time to the next */
	MAX_NAME = 40,        /* bytes: a line that wraps cannot be erased */
};

static const char erase[] = "\r\033[K";
static const double megabyte = 1e6;

static void write_name(FILE *out, const char *label)
{
	char name[MAX_NAME + 1];

	snprintf(name, sizeof(name), "%s", path_tail(label, 1));
	text_untrusted(&(struct text){.out = out}, name);
}

void download_line_show(void *arg, const char *label, uint64_t bytes, uint64_t total)
{
	struct download_line *line = arg;
	uint64_t now = monotonic_ns();

	if (!label) {
		if (line->shown)
			fputs(erase, line->out);
		fflush(line->out);
		*line = (struct download_line){.out = line->out};
		return;
	}
	if (!line->next)
		line->next = now + REST;
	if (now < line->next)
		return;
	line->next = now + REST;
	line->shown = true;
	fprintf(line->out, "%sdownloading debug info of ", erase);
	write_name(line->out, label);
	if (total)
		fprintf(line->out, ": %.1f of %.1f MB", (double)bytes / megabyte, (double)total / megabyte);
	else if (bytes)
		fprintf(line->out, ": %.1f MB", (double)bytes / megabyte);
	fputs(" (Ctrl-C: go on without)", line->out);
	fflush(line->out);
}
