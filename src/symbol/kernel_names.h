/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_KERNEL_NAMES_H
#define STAKEOUT_SYMBOL_KERNEL_NAMES_H

#include <stdbool.h>

#include "base/arena.h"
#include "model/snapshot.h"
#include "model/stack.h"

#define KERNEL_NAMES_PATH "/proc/kallsyms"

/* Names of kernel code: from text that /proc gave, else by address. The table is read when the first is needed. */
struct kernel_names;

/* `path` (NULL: none) and the arena outlive it; strings go to the arena. NULL when memory is exhausted. */
struct kernel_names *kernel_names_create(struct arena *arena, const char *path);
void kernel_names_destroy(struct kernel_names *names);

/* Appends kernel frame number `index` of the thread. False when memory is exhausted. */
bool kernel_names_add(struct kernel_names *names, const struct snap_thread *thread, uint32_t index, struct stack *out);

/* Why addresses have no names, or NULL. */
const char *kernel_names_error(const struct kernel_names *names);

#endif
