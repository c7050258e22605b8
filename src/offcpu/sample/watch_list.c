/* SPDX-License-Identifier: MIT */
#include "offcpu/sample/watch_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/sorted.h"
#include "base/vec.h"
#include "proc/family.h"

enum { SCAN_NS = 100000000 }; /* how often new processes are searched for */

struct watch_entry {
	pid_t pid;
	struct watched_process *process;
};

struct watch_list {
	VEC_FIELDS(struct watch_entry); /* by rising pid */
	struct watch_list_options options;
	struct looker *looker;
	pid_t self;
	uint64_t scanned_ns;
	struct u64map refused; /* pids */
};

struct watch_list *watch_list_create(struct looker *looker, const struct watch_list_options *options)
{
	struct watch_list *list = calloc(1, sizeof(*list));

	if (!list)
		return NULL;
	list->looker = looker;
	list->options = *options;
	list->self = process_self();
	return list;
}

void watch_list_destroy(struct watch_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->len; i++)
		watched_process_close(list->looker, list->data[i].process);
	vec_deinit(list);
	u64map_deinit(&list->refused);
	free(list);
}

static bool is_watched(const struct watch_list *list, pid_t pid)
{
	size_t upto = sorted_upto(list->data, list->len, .pid, pid);

	return upto && list->data[upto - 1].pid == pid;
}

int watch_list_add(struct watch_list *list, pid_t pid, struct err *err)
{
	struct watch_entry entry = {.pid = pid};
	size_t at = sorted_upto(list->data, list->len, .pid, pid);
	int rc;

	if (is_watched(list, pid))
		return 0;
	if (!vec_reserve(list, list->len + 1))
		return err_set(err, ENOMEM, "out of memory");
	rc = watched_process_open(pid, err, &entry.process);
	if (rc < 0)
		return rc;
	memmove(list->data + at + 1, list->data + at, (list->len - at) * sizeof(*list->data));
	list->data[at] = entry;
	list->len++;
	return 0;
}

static bool is_wanted(const struct watch_list *list, pid_t pid)
{
	if (pid == list->self || is_watched(list, pid))
		return false;
	return list->options.all_processes ? !process_is_helper(pid, list->self) : is_watched(list, process_parent(pid));
}

void watch_list_scan(struct watch_list *list)
{
	struct tid_list pids = {0};

	list->scanned_ns = monotonic_ns();
	process_list_all(&pids); /* the next scan may list what this one missed */
	for (size_t i = 0; i < pids.len; i++) {
		pid_t pid = pids.data[i];
		int rc = is_wanted(list, pid) ? watch_list_add(list, pid, NULL) : 0;
		bool created;

		if (rc < 0 && rc != -ESRCH)
			u64map_put(&list->refused, (uint64_t)pid, &created);
	}
	vec_deinit(&pids);
}

void watch_list_look(struct watch_list *list)
{
	size_t kept = 0;

	if ((list->options.all_processes || list->options.children) && monotonic_ns() - list->scanned_ns >= SCAN_NS)
		watch_list_scan(list);
	for (size_t i = 0; i < list->len; i++) {
		struct watch_entry entry = list->data[i];

		if (watched_process_look(list->looker, entry.process)) {
			list->data[kept++] = entry;
		} else {
			watched_process_end(list->looker, entry.process, false);
			watched_process_close(list->looker, entry.process);
		}
	}
	list->len = kept;
}

void watch_list_end(struct watch_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		watched_process_end(list->looker, list->data[i].process, true);
}

bool watch_list_is_empty(const struct watch_list *list)
{
	return !list->len;
}

uint64_t watch_list_unreadable(const struct watch_list *list)
{
	return list->refused.len;
}
