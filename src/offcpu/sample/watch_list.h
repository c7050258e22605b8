/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_SAMPLE_WATCH_LIST_H
#define STAKEOUT_OFFCPU_SAMPLE_WATCH_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "offcpu/sample/looker.h"

/* The processes that a looker looks at: some, with their children or without, or all. */
struct watch_list;

struct watch_list_options {
	bool all_processes;
	bool children;
};

/* `looker` must outlive it. NULL when memory is exhausted. */
struct watch_list *watch_list_create(struct looker *looker, const struct watch_list_options *options);
void watch_list_destroy(struct watch_list *list);

/* Errors as of process_open(). */
int watch_list_add(struct watch_list *list, pid_t pid, struct err *err);

/* Adds the processes that have come since: all, or children of those that are watched. */
void watch_list_scan(struct watch_list *list);

/* Looks at each, and drops those that have ended; scans before if that was not done lately. */
void watch_list_look(struct watch_list *list);

/* The recording ends, and so does what waits. */
void watch_list_end(struct watch_list *list);

bool watch_list_is_empty(const struct watch_list *list);

/* Processes that a scan found and that could not be opened, each once. */
uint64_t watch_list_unreadable(const struct watch_list *list);

#endif
