/* SPDX-License-Identifier: MIT */
#include "proc/clocks.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* "monotonic        -86400         0": seconds, and nanoseconds, which are never negative. */
static bool parse_offset(const char *text, const char *clock, int64_t *out)
{
	const char *line = strstr(text, clock);
	int64_t s, ns;

	if (!line || sscanf(line + strlen(clock), " %" SCNd64 " %" SCNd64, &s, &ns) != 2 || s > INT64_MAX / NS_PER_S / 4 || s < INT64_MIN / NS_PER_S / 4 ||
	    ns < 0 || ns >= NS_PER_S)
		return false;
	*out = s * NS_PER_S + ns;
	return true;
}

bool clock_offsets_parse(const char *text, struct clock_offsets *out)
{
	return parse_offset(text, "monotonic", &out->monotonic_ns) && parse_offset(text, "boottime", &out->boottime_ns);
}

static uint64_t namespace_of(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, 0) == 0 ? st.st_ino : 0;
}

/* The file tells those of the namespace that its children will be in: mostly, but not always, its own. */
static bool read_offsets(int dir, struct clock_offsets *out)
{
	char text[256];

	return namespace_of(dir, "ns/time") == namespace_of(dir, "ns/time_for_children") &&
	       process_read_file(dir, "timens_offsets", text, sizeof(text)) > 0 && clock_offsets_parse(text, out);
}

bool clock_offsets_of(const struct process *process, struct clock_offsets *out)
{
	_cleanup_close_ int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const uint64_t theirs = namespace_of(process->mm_fd, "ns/time"), own = self < 0 ? 0 : namespace_of(self, "ns/time");
	struct clock_offsets ours;

	*out = (struct clock_offsets){0};
	if (!theirs || !own || theirs == own) /* where there are none, or none to be seen, all are taken to be in the same one */
		return true;
	if (!read_offsets(process->mm_fd, out) || !read_offsets(self, &ours))
		return false;
	out->monotonic_ns -= ours.monotonic_ns;
	out->boottime_ns -= ours.boottime_ns;
	return true;
}
