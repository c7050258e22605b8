/* SPDX-License-Identifier: MIT */
#include "report/json_state.h"

static void put_signals(struct json *j, uint64_t set)
{
	json_array(j, "signals");
	for (int i = 1; i <= 64; i++)
		if (set >> (i - 1) & 1)
			json_int(j, NULL, i);
	json_array_end(j);
}

static void put_key(struct json *j, const struct wait_state *s)
{
	json_int(j, "id", s->id);
	if (s->index >= 0)
		json_int(j, "index", s->index);
	if (s->has_key)
		json_hex(j, "key", s->key);
}

void json_wait_state(struct json *j, const struct wait *w)
{
	const struct wait_state *s = &w->state;
	const bool is_group = w->kind == WAIT_FROZEN;

	if (wait_is_on_descriptors(w->kind))
		json_string(j, "medium", s->medium ? wait_kind_name(s->medium) : NULL);
	if (!wait_is_state(w) && !s->medium)
		return;
	if (w->kind == WAIT_SIGNAL)
		put_signals(j, s->signals);
	if (w->kind == WAIT_STOPPED && s->stop_signal)
		json_int(j, "stop_signal", s->stop_signal);
	if (w->kind == WAIT_CHILD && s->children_known)
		json_uint(j, "children", s->children);
	if (s->place && !s->medium)
		json_string(j, is_group ? "cgroup" : w->kind == WAIT_KERNEL_LOCK ? "function" : "file", s->place);
	if (s->filesystem)
		json_string(j, "filesystem", s->filesystem);
	if (s->device)
		json_string(j, "device", s->device);
	if (w->kind >= WAIT_DISK && w->kind <= WAIT_REMOTE)
		json_bool(j, "page_fault", s->in_fault);
	if (w->kind >= WAIT_SYSV_SEMAPHORE && w->kind <= WAIT_SYSV_ROOM)
		put_key(j, s);
}
