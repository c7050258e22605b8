/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_PROCESS_FILES_H
#define STAKEOUT_TARGET_PROCESS_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "target/modules.h"
#include "model/snapshot.h"

/* The memory map of a running process and the files behind it, without a look at its threads. It is not stopped. */
struct process_files {
	struct snapshot *snap; /* its map, its vDSO, and what it announced to debuggers (target/jit_images.h) */
	struct modules *modules;
};

int process_files_open(pid_t pid, struct err *err, struct process_files *out);

/*
 * Files that `is_known` says are known already, of all that code is mapped from, are not opened: their mappings have no
 * module. `identity` is that of image.h, 0 when it may not be asked for. Which files they are costs a quarter of opening
 * them.
 */
typedef bool (*process_files_known_fn)(void *arg, const struct map_entry *entry, uint64_t identity);
int process_files_open_others(pid_t pid, process_files_known_fn is_known, void *arg, struct err *err,
			      struct process_files *out);

void process_files_close(struct process_files *files);

/* Changes with every exec, and when the number is given to another process. 0: it is not known. */
uint64_t process_files_generation(pid_t pid);

#endif
