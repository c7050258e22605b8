/* SPDX-License-Identifier: MIT */
#include "report/json_deadlock.h"

#include "report/json_frame.h"

static bool has_part(const struct deadlock *d, const struct snapshot *snap)
{
	for (size_t i = 0; i < d->len; i++)
		if (d->data[i]->snap == snap)
			return true;
	return false;
}

/* Each waits for the next, the last for the first. */
static void put_deadlock(struct json *j, const struct deadlock *d, bool stacks)
{
	json_array(j, NULL);
	for (size_t i = 0; i < d->len; i++) {
		json_object(j, NULL);
		json_int(j, "pid", d->data[i]->snap->pid);
		json_int(j, "tid", d->data[i]->thread->tid);
		if (stacks)
			json_stack(j, "stack", d->data[i]->user, NULL);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_deadlocks(struct json *j, const char *name, const struct deadlocks *deadlocks, bool likely, const struct snapshot *of, bool stacks)
{
	json_array(j, name);
	for (size_t i = 0; deadlocks && i < deadlocks->len; i++)
		if (deadlocks->data[i].likely == likely && (!of || has_part(&deadlocks->data[i], of)))
			put_deadlock(j, &deadlocks->data[i], stacks);
	json_array_end(j);
}

void json_deadlocks(struct json *j, const struct deadlocks *deadlocks, const struct snapshot *of, bool stacks)
{
	put_deadlocks(j, "deadlocks", deadlocks, false, of, stacks);
	put_deadlocks(j, "likely_deadlocks", deadlocks, true, of, stacks);
}
