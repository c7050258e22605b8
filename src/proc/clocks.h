/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_CLOCKS_H
#define STAKEOUT_PROC_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/process.h"

/* Clocks of a time namespace: how far they are ahead of those of the machine, or of ours. */
struct clock_offsets {
	int64_t monotonic_ns;
	int64_t boottime_ns;
};

/* Those of a process, ahead of ours. False: they are others than ours, and it is not known by how much. */
bool clock_offsets_of(const struct process *process, struct clock_offsets *out);

/* The text of /proc/PID/timens_offsets, which are ahead of those of the machine. False: it is none. */
bool clock_offsets_parse(const char *text, struct clock_offsets *out);

#endif
