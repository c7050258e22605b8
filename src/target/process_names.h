/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_PROCESS_NAMES_H
#define STAKEOUT_TARGET_PROCESS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/container.h"
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

/* What a process runs. Strings are the arena's. */
struct process_program {
	pid_t pid;
	uint64_t start_ns;        /* since boot, in whole clock ticks */
	const char *name;         /* of its main thread */
	const char *file;         /* NULL: not known */
	const char *script;       /* what an interpreter runs (target/script.h), or NULL */
	const char *script_word;  /* the argument that says so, with directories or packages */
	const char *command_line; /* cut at PROCESS_LINE_BYTES; NULL: there is none, or it is not known */
	pid_t inner_pid;          /* in its own pid namespace; 0: that is ours */
	struct container container;
};

enum { PROCESS_LINE_BYTES = 512 };

/*
 * Those that live, in the same order; how many. All command lines are read by one helper, so that many cost little; but if
 * one process does not answer, all are missing, and *lines becomes false: without it they are not read.
 */
size_t process_programs(const pid_t *pids, size_t n, struct arena *arena, bool *lines, struct process_program *out);

/* -ESRCH: it has ended. */
int process_portrait(pid_t pid, struct arena *arena, struct process_portrait *out);

#endif
