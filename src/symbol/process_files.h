/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_PROCESS_FILES_H
#define STAKEOUT_SYMBOL_PROCESS_FILES_H

#include <sys/types.h>

#include "base/err.h"
#include "elf/modules.h"
#include "model/snapshot.h"

/* The memory map of a running process and the files behind it, without a look at its threads. It is not stopped. */
struct process_files {
	struct snapshot *snap; /* only its map, and its vDSO */
	struct modules *modules;
};

int process_files_open(pid_t pid, struct err *err, struct process_files *out);
void process_files_close(struct process_files *files);

#endif
