/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_PROCESS_NAMES_H
#define STAKEOUT_TARGET_PROCESS_NAMES_H

#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "proc/process.h"

/* By what people call processes. */

struct process_name {
	struct process_id id;
	const char *name; /* the arena's */
};

struct process_names {
	VEC_FIELDS(struct process_name);
};

/*
 * Appends all names of all processes, by pid: that of the main thread, that of the program's file, and what an interpreter
 * runs (target/script.h). Without this process and those that it descends from, which may well be called as what is looked
 * for (`sudo stakeout nginx`), and without those that have ended.
 */
int process_names_list(struct arena *arena, struct err *err, struct process_names *out);

/* What helps to tell processes of one name apart. */
struct process_portrait {
	pid_t pid;
	uint32_t uid;
	uint64_t age_ns; /* since it was started */
	int threads;
	const char *command_line; /* the arena's; its name in brackets where there is none */
};

/* -ESRCH: it has ended. */
int process_portrait(pid_t pid, struct arena *arena, struct process_portrait *out);

#endif
