/* SPDX-License-Identifier: MIT */
#include "cmd/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_is_capable(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && !(term && strcmp(term, "dumb") == 0);
}

bool terminal_size(int fd, unsigned *columns, unsigned *rows)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || !size.ws_col || !size.ws_row)
		return false;
	*columns = size.ws_col;
	*rows = size.ws_row;
	return true;
}
