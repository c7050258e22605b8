/* SPDX-License-Identifier: MIT */
#include "report/times.h"

#include <string.h>

#include "report/text_format.h"

int64_t time_off_cpu(const struct snap_thread *thread)
{
	return thread->state == 'R' ? -1 : thread->off_cpu_ns;
}

void times_put_range(FILE *out, const char *before, const char *behind, uint64_t least, uint64_t most)
{
	char from[DURATION_LEN], to[DURATION_LEN];

	format_duration(least, from);
	format_duration(most, to);
	if (strcmp(from, to) == 0)
		fprintf(out, "%s%s%s", before, from, behind);
	else
		fprintf(out, "%s%s to %s%s", before, from, to, behind);
}

void times_put(FILE *out, const char *before, const char *behind, const struct trace_thread *const *members, size_t count, thread_time *time_of)
{
	int64_t least = INT64_MAX, most = -1;

	for (size_t i = 0; i < count; i++) {
		const int64_t ns = time_of(members[i]->thread);

		if (ns < 0)
			continue;
		least = ns < least ? ns : least;
		most = ns > most ? ns : most;
	}
	if (most >= 0)
		times_put_range(out, before, behind, (uint64_t)least, (uint64_t)most);
}
