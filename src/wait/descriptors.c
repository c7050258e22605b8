/* SPDX-License-Identifier: MIT */
#include "wait/descriptors.h"

#include <string.h>

/* The one that tells who can end the wait: it is the only one. */
static const struct descriptor *only_one(const struct snap_wait *w)
{
	if (w->kind == WAIT_EVENTS)
		return w->set.total == 1 && w->set.len == 1 ? &w->set.data[0] : NULL;
	return w->on.fd >= 0 ? &w->on : NULL;
}

/* The kernel gives up by itself what is not answered. */
static bool ends_by_itself(const struct snap_wait *w, const struct descriptor *d)
{
	const char *state = d->kind == DESCRIPTOR_SOCKET ? d->socket.state : NULL;

	return w->kind == WAIT_EVENTS && state && strcmp(state, "connecting") == 0;
}

bool descriptor_waits_index(const struct snapshot *snap, struct u64map *out)
{
	for (size_t i = 0; i < snap->waits.len; i++) {
		bool created;
		uint64_t *slot = u64map_put(out, (uint32_t)snap->waits.data[i].tid, &created);

		if (!slot)
			return false;
		*slot = i;
	}
	return true;
}

bool wait_on_descriptors(const struct trace_thread *t, const struct u64map *index, struct wait *out)
{
	const uint64_t *slot = u64map_find(index, (uint32_t)t->thread->tid);
	const struct snap_wait *w = slot ? &t->snap->waits.data[*slot] : NULL;
	const struct descriptor *d = w ? only_one(w) : NULL;

	if (!w)
		return false;
	if (d && ends_by_itself(w, d))
		d = NULL;
	*out = (struct wait){
		.kind = w->kind,
		.on = w,
		.peers = d ? d->peers : NULL,
		.npeers = d ? d->npeers : 0,
		.peers_known = d && d->peers_known,
		.certain = t->thread->still_besides,
	};
	return true;
}
