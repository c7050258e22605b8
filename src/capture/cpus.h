/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_CPUS_H
#define STAKEOUT_CAPTURE_CPUS_H

#include <sched.h>
#include <stdbool.h>

/* Which CPUs are taken for a window (window.h): those that matter, and no other. */

struct cpu_rules {
	cpu_set_t allowed; /* by our affinity and cpuset */
	cpu_set_t aloof;   /* isolated and nohz_full ones: only if the target is there */
};

/* As this machine has them. False: it has more CPUs than there is room for. */
bool cpu_rules_read(struct cpu_rules *out);

/*
 * `seen` are those where threads of the target run, or ran just before; `all`: that was not enough, since one ran elsewhere.
 * False when the target runs where we may not be: a window would be in vain.
 */
bool cpus_choose(const struct cpu_rules *rules, const cpu_set_t *seen, bool all, cpu_set_t *out);

/* Adds those of a list as the kernel writes it, such as "0-3,8"; nothing of one that is not. */
void cpus_add_list(const char *text, cpu_set_t *out);

#endif
