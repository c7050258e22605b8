/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_PROCESS_ARGS_H
#define STAKEOUT_CMD_PROCESS_ARGS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "model/notes.h"
#include "proc/process.h"

/* The processes that a command line names, by number or by name. */

struct process_arg {
	pid_t pid;  /* 0: it is a name */
	char *name; /* owned, or NULL */
};

struct process_args {
	VEC_FIELDS(struct process_arg); /* each once, in the order of the command line */
	bool all;      /* of several processes of one name take all, */
	bool takes_all; /* which there is an option for */
	bool children; /* also processes that these have started */
};

/* Takes "12", "nginx" or "12,nginx": a word of digits is a number. -EINVAL with a sentence when a part is neither. */
int process_args_add(struct process_args *args, const char *text, struct err *err);

/* Takes "12" or "12,13", numbers only, each once: threads have no names that would tell them apart. */
int process_args_add_numbers(struct tid_list *numbers, const char *text, struct err *err);

bool process_args_have_names(const struct process_args *args);

/*
 * Appends the processes, each once, those found by name as they are now: see process_check_id(). Names that nobody has go
 * to `missing`, each as a sentence. -ENOTUNIQ when a name is that of several processes: they are listed on the standard
 * error.
 */
int process_args_find(const struct process_args *args, struct err *err, struct process_ids *out, struct notes *missing);

void process_args_deinit(struct process_args *args);

#endif
