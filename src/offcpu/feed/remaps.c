/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/remaps.h"

enum {
	QUIET_NS = 1000000,
	PATIENCE_NS = 4000000, /* then it is read even without a quiet moment */
	FIRST_GAP_NS = 2000000,
	LONGEST_GAP_NS = 1000000000, /* and how long a process is remembered */
	MAX_RECENT = 8192,
};

void remaps_deinit(struct remaps *remaps)
{
	vec_deinit(&remaps->recent);
}

static struct remap *find(struct remaps *remaps, pid_t tgid)
{
	for (size_t i = 0; i < remaps->recent.len; i++)
		if (remaps->recent.data[i].tgid == tgid)
			return &remaps->recent.data[i];
	return NULL;
}

void remaps_note(struct remaps *remaps, pid_t tgid, uint64_t now_ns)
{
	struct remap *remap = find(remaps, tgid);

	if (!remap) {
		if (remaps->recent.len >= MAX_RECENT ||
		    !vec_push(&remaps->recent, (struct remap){.tgid = tgid, .gap_ns = FIRST_GAP_NS}))
			return;
		remap = &remaps->recent.data[remaps->recent.len - 1];
	}
	if (!remap->pending)
		remap->first_ns = now_ns;
	remap->pending = true;
	remap->last_ns = now_ns;
}

static bool is_due(const struct remap *remap, uint64_t now_ns)
{
	return remap->pending && now_ns >= remap->not_before_ns &&
	       (now_ns - remap->last_ns >= QUIET_NS || now_ns - remap->first_ns >= PATIENCE_NS);
}

pid_t remaps_take(struct remaps *remaps, uint64_t now_ns)
{
	for (size_t i = 0; i < remaps->recent.len; i++) {
		struct remap *remap = &remaps->recent.data[i];

		if (is_due(remap, now_ns)) {
			remap->pending = false;
			remap->not_before_ns = now_ns + remap->gap_ns;
			remap->gap_ns = remap->gap_ns * 2 < LONGEST_GAP_NS ? remap->gap_ns * 2 : LONGEST_GAP_NS;
			return remap->tgid;
		}
		if (!remap->pending && now_ns - remap->last_ns > LONGEST_GAP_NS) {
			*remap = remaps->recent.data[--remaps->recent.len];
			i--;
		}
	}
	return 0;
}

bool remaps_pending(const struct remaps *remaps)
{
	for (size_t i = 0; i < remaps->recent.len; i++)
		if (remaps->recent.data[i].pending)
			return true;
	return false;
}
