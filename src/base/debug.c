/* SPDX-License-Identifier: MIT */
#include "base/debug.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static atomic_bool is_on;
static uint64_t began_ns;

void debug_begin(void)
{
	began_ns = monotonic_ns();
	atomic_store(&is_on, true);
}

bool debug_is_on(void)
{
	return atomic_load_explicit(&is_on, memory_order_relaxed);
}

const char *debug_errno_name(int code, char buf[static 32])
{
	const char *name = strerrorname_np(code);

	if (name && code > 0)
		return name;
	snprintf(buf, 32, "errno %d", code);
	return buf;
}

/* One write for each line: several processes share the stream. What is quoted is shown without what moves a terminal. */
void debug_say(int rc, const char *fmt, ...)
{
	char line[1024], name[32];
	size_t len, room = sizeof(line) - 1;
	va_list args;
	int n;

	if (!debug_is_on())
		return;
	n = snprintf(line, room, "stakeout: [%8.3f ms] ", (double)(monotonic_ns() - began_ns) / 1e6);
	len = n > 0 ? (size_t)n : 0;
	va_start(args, fmt);
	n = vsnprintf(line + len, room - len, fmt, args);
	va_end(args);
	len += n > 0 ? (size_t)n : 0;
	if (len < room && rc < 0)
		len += (size_t)snprintf(line + len, room - len, ": %s", debug_errno_name(-rc, name));
	if (len > room - 1)
		len = room - 1;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0)
		return; /* nobody reads it */
}
