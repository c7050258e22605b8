/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_MMAP_WATCH_H
#define STAKEOUT_KERNEL_MMAP_WATCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Reports which processes map executable memory, programs when they start as well as libraries loaded later, by means
 * of perf events. Covers all processes that are visible in our pid namespace. For one thread.
 */
struct mmap_watch;

/* Starts at once. -EACCES, -ENOSYS and other errors with a sentence that says what is missing. */
int mmap_watch_create(struct err *err, struct mmap_watch **out);
void mmap_watch_destroy(struct mmap_watch *watch);

/* For poll() and the like: readable when there is something to read. Belongs to the watch. */
int mmap_watch_fd(const struct mmap_watch *watch);

/* Calls `tell` for each process that has mapped executable memory since the last call, once. Never waits. */
typedef void (*mmap_watch_fn)(void *arg, pid_t tgid);
void mmap_watch_read(struct mmap_watch *watch, mmap_watch_fn tell, void *arg);

/* Events that did not fit because nobody read; the kernel reports them with the next event that fits. */
uint64_t mmap_watch_lost(const struct mmap_watch *watch);

/* Whole records as they come from the kernel: calls `tell` for each executable mapping; returns how many were lost. */
uint64_t mmap_watch_parse(const void *records, size_t len, mmap_watch_fn tell, void *arg);

#endif
