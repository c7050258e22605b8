/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DOCTOR_RIGHTS_H
#define STAKEOUT_DOCTOR_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "privilege/capabilities.h"
#include "proc/lsm.h"

/* What this process may do, and what on this machine may be in the way. */
struct rights {
	uint64_t capabilities; /* the effective ones: bit N is number N */
	bool in_user_namespace; /* not the first one, where capabilities are worth less */
	bool is_root;           /* its user, that is, with whatever rights a container left it */
	bool is_filtered;       /* by seccomp */
	bool is_locked_down;    /* the kernel, even against root */
	struct lsm_label label; /* by which a security module confines it */
	int ptrace_scope;       /* settings of the kernel; -1: it has no such setting */
	int perf_event_paranoid;
	int kptr_restrict;
};

void rights_read(struct rights *rights);

/*
 * What helps where something was refused that takes all of these capabilities: a command, or words. NULL: nothing is
 * known to be in the way. syscall: what was called, which a filter may refuse; NULL: nothing that filters do.
 */
const char *rights_remedy(const struct rights *rights, uint64_t needed, const char *syscall, struct arena *arena);

/* The same for what yama decides, too. */
const char *rights_remedy_ptrace(const struct rights *rights, const char *syscall, struct arena *arena);

#endif
