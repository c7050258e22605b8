/* SPDX-License-Identifier: MIT */
#include "capture/besides.h"

#include <errno.h>
#include <stdlib.h>

#include "capture/take.h"

static besides_gatherer *const gatherers[] = {gather_descriptors, gather_file_locks, gather_thread_facts, gather_handlers};

/* Not if it was woken: then what it waited for has come, and what was read may be of after that. */
static bool is_blocked_still(const struct observation *o, const struct snap_thread *t)
{
	return o && o->state == t->state && t->still != STILL_NEVER && !t->woken && take_unmoved(o, t);
}

static bool any_gathered(const struct besides *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < all[i].snap->threads.len; k++)
			if (all[i].gathered[k])
				return true;
	return false;
}

/* Also of those who wait for something else: others may wait for them. */
void besides_judge(const struct capture *capture, struct snapshot *snap)
{
	for (size_t i = 0; i < snap->threads.len; i++) {
		struct snap_thread *t = &snap->threads.data[i];

		t->still_besides = is_blocked_still(take_find_observed(capture, t->tid), t);
	}
}

int besides_gather(struct besides *all, size_t n, struct err *err, bool *any)
{
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		all[i].gathered = calloc(all[i].snap->threads.len + 1, sizeof(*all[i].gathered));
		if (!all[i].gathered)
			rc = -ENOMEM;
	}
	for (size_t i = 0; rc == 0 && i < sizeof(gatherers) / sizeof(gatherers[0]); i++)
		rc = gatherers[i](all, n);
	*any = rc == 0 && any_gathered(all, n);
	for (size_t i = 0; i < n; i++)
		free(all[i].gathered);
	return rc < 0 ? err_set(err, -rc, "out of memory") : 0;
}
