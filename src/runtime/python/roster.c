/* SPDX-License-Identifier: MIT */
#include "runtime/python/roster.h"

#include <errno.h>

#include "base/cleanup.h"
#include "proc/task.h"

void python_roster_deinit(struct python_roster *roster)
{
	vec_deinit(&roster->listed);
	vec_deinit(&roster->known);
	u64map_deinit(&roster->by_tid);
	*roster = (struct python_roster){0};
}

bool python_roster_add(struct python_roster *roster, const struct python_thread *thread)
{
	bool created;
	uint64_t *slot = u64map_put(&roster->by_tid, (uint64_t)thread->tid, &created);

	if (!slot)
		return false;
	if (created)
		*slot = roster->known.len;
	return vec_push(&roster->known, *thread);
}

const struct python_thread *python_roster_find(const struct python_roster *roster, pid_t tid)
{
	uint64_t *slot = u64map_find(&roster->by_tid, (uint64_t)tid);

	return slot ? &roster->known.data[*slot] : NULL;
}

const struct python_thread *python_roster_find_other(const struct python_roster *roster, const struct python_thread *thread)
{
	for (const struct python_thread *next = thread + 1; next < roster->known.data + roster->known.len; next++)
		if (next->tid == thread->tid)
			return next;
	return NULL;
}

/* What was known of a thread that is listed again is void: its thread state may be another one. */
static bool renew_known(struct python_roster *roster)
{
	struct python_threads old = roster->known;
	bool ok = true;

	roster->known = (struct python_threads){0};
	u64map_deinit(&roster->by_tid);
	for (size_t i = 0; ok && i < roster->listed.len; i++)
		ok = python_roster_add(roster, &roster->listed.data[i]);
	for (size_t i = 0, listed = roster->known.len; ok && i < old.len; i++) {
		const struct python_thread *again = python_roster_find(roster, old.data[i].tid);

		if (!again || again >= roster->known.data + listed)
			ok = python_roster_add(roster, &old.data[i]);
	}
	vec_deinit(&old);
	return ok;
}

int python_roster_list(struct python_roster *roster, struct python_layout *layout, struct target *target, struct err *err)
{
	_cleanup_(task_numbers_deinit) struct task_numbers numbers = {0};
	int rc = task_numbers_list(&target->process, &numbers);

	if (rc < 0)
		err_set(err, -rc, "its threads cannot be listed");
	else
		rc = python_threads_list(layout, &target->memory.mem, &numbers.own, err, &roster->listed);
	for (size_t i = 0; rc == 0 && i < roster->listed.len; i++) {
		struct python_thread *thread = &roster->listed.data[i];
		pid_t ours = task_numbers_find(&numbers, thread->own);

		thread->tid = ours ? ours : thread->tid;
	}
	if (rc == 0 && !renew_known(roster))
		rc = err_set(err, ENOMEM, "out of memory");
	return rc;
}
