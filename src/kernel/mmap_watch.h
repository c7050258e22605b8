/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_MMAP_WATCH_H
#define STAKEOUT_KERNEL_MMAP_WATCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Tells which processes map executable memory, whole programs at their start and libraries that come later, by the
 * kernel's own notes of it (perf events). Of all processes that our pid namespace has numbers for. One thread may use
 * it.
 */
struct mmap_watch;

/* From now on. -EACCES, -ENOSYS and others with a sentence that says what is missing. */
int mmap_watch_create(struct err *err, struct mmap_watch **out);
void mmap_watch_destroy(struct mmap_watch *watch);

/* Readable, to poll() and the like, when there is something to read. Belongs to the watch. */
int mmap_watch_fd(const struct mmap_watch *watch);

/* Calls `tell` for each process that has mapped executable memory since the last call, once. Never waits. */
typedef void (*mmap_watch_fn)(void *arg, pid_t tgid);
void mmap_watch_read(struct mmap_watch *watch, mmap_watch_fn tell, void *arg);

/* Notes that did not fit while nobody read; the kernel tells of them with the next one that does. */
uint64_t mmap_watch_lost(const struct mmap_watch *watch);

/* Whole records as they come from the kernel: calls `tell` for each executable mapping; returns how many were lost. */
uint64_t mmap_watch_parse(const void *records, size_t len, mmap_watch_fn tell, void *arg);

#endif
