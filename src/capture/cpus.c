/* SPDX-License-Identifier: MIT */
#include "capture/cpus.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

void cpus_add_list(const char *text, cpu_set_t *out)
{
	while (*text) {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (end == text)
			return;
		if (*end == '-') {
			text = end + 1;
			last = strtoul(text, &end, 10);
			if (end == text)
				return;
		}
		for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
			CPU_SET(cpu, out);
		if (*end != ',')
			return;
		text = end + 1;
	}
}

static void add_file(const char *path, cpu_set_t *out)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char line[4096];

	if (file && fgets(line, sizeof(line), file))
		cpus_add_list(line, out);
}

bool cpu_rules_read(struct cpu_rules *out)
{
	CPU_ZERO(&out->aloof);
	if (sched_getaffinity(0, sizeof(out->allowed), &out->allowed) < 0)
		return false;
	add_file("/sys/devices/system/cpu/isolated", &out->aloof);
	add_file("/sys/devices/system/cpu/nohz_full", &out->aloof);
	return true;
}

bool cpus_choose(const struct cpu_rules *rules, const cpu_set_t *seen, bool all, cpu_set_t *out)
{
	bool ok = true;

	CPU_ZERO(out);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		bool allowed = CPU_ISSET(cpu, &rules->allowed), is_seen = CPU_ISSET(cpu, seen);

		ok &= allowed || !is_seen;
		if (allowed && (is_seen || (all && !CPU_ISSET(cpu, &rules->aloof))))
			CPU_SET(cpu, out);
	}
	return ok;
}
