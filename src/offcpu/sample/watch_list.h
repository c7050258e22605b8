/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_SAMPLE_WATCH_LIST_H
#define STAKEOUT_OFFCPU_SAMPLE_WATCH_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "offcpu/sample/looker.h"

/* The processes that a looker looks at: all of them, or some, with or without their children. */
struct watch_list;

struct watch_list_options {
	bool all_processes;
	bool children;
};

/* `looker` must outlive it. NULL when memory is exhausted. */
struct watch_list *watch_list_create(struct looker *looker, const struct watch_list_options *options);
void watch_list_destroy(struct watch_list *list);

/* Fails as process_open() does. */
int watch_list_add(struct watch_list *list, pid_t pid, struct err *err);

/* Adds new processes: all, or children of watched ones. */
void watch_list_scan(struct watch_list *list);

/* Looks at each, and drops those that have ended; scans first if the last scan was long ago. */
void watch_list_look(struct watch_list *list);

/* The recording ends, and so do the waits under way. */
void watch_list_end(struct watch_list *list);

bool watch_list_is_empty(const struct watch_list *list);

/* Processes that a scan found but could not open, each counted once. */
uint64_t watch_list_unreadable(const struct watch_list *list);

#endif
