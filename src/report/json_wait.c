/* SPDX-License-Identifier: MIT */
#include "report/json_wait.h"

#include "model/descriptor.h"
#include "report/json_state.h"

static void put_peers(struct json *j, const char *key, const struct wait_peer *peers, uint32_t n)
{
	json_array(j, key);
	for (uint32_t i = 0; i < n; i++) {
		const char state[] = {peers[i].state, '\0'};

		json_object(j, NULL);
		json_int_or_null(j, "pid", peers[i].pid, peers[i].pid);
		json_string(j, "comm", peers[i].comm);
		json_string(j, "state", peers[i].state ? state : NULL);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_socket(struct json *j, const struct descriptor *d)
{
	const struct descriptor_socket *s = &d->socket;

	if (d->kind != DESCRIPTOR_SOCKET) {
		json_null(j, "socket");
		return;
	}
	json_object(j, "socket");
	json_string(j, "protocol", s->protocol);
	json_string(j, "state", s->state);
	json_string(j, "local", s->local);
	json_string(j, "remote", s->remote);
	json_bool(j, "listening", s->listening);
	json_uint(j, "unread", s->unread);
	json_uint(j, "unsent", s->unsent);
	json_object_end(j);
}

static void put_descriptor(struct json *j, const char *key, const struct descriptor *d)
{
	if (d->fd < 0) {
		json_null(j, key);
		return;
	}
	json_object(j, key);
	json_int(j, "fd", d->fd);
	json_string(j, "kind", descriptor_kind_name(d->kind));
	json_string(j, "name", d->name);
	json_int_or_null(j, "offset", d->offset >= 0, d->offset);
	json_int_or_null(j, "events", d->events, d->events);
	json_milliseconds(j, "left_ms", d->left_ns);
	json_int_or_null(j, "count", d->kind == DESCRIPTOR_EVENTFD, (int64_t)d->count);
	json_int_or_null(j, "pid", d->pid > 0, d->pid);
	put_socket(j, d);
	put_peers(j, "peers", d->peers, d->npeers);
	json_bool(j, "peers_known", d->peers_known);
	json_object_end(j);
}

static void put_set(struct json *j, const struct descriptor_set *set)
{
	json_object(j, "set");
	json_uint(j, "total", set->total);
	json_uint(j, "listening", set->listeners);
	json_object(j, "kinds");
	for (unsigned kind = 0; kind < DESCRIPTOR_KIND_COUNT; kind++)
		if (set->counts[kind])
			json_uint(j, descriptor_kind_name(kind), set->counts[kind]);
	json_object_end(j);
	json_array(j, "descriptors");
	for (uint32_t i = 0; i < set->len; i++)
		put_descriptor(j, NULL, &set->data[i]);
	json_array_end(j);
	json_object_end(j);
}

/* What is waited for on descriptors and files; all null of a lock. */
static void put_on(struct json *j, const struct snap_wait *on)
{
	if (on)
		put_descriptor(j, "descriptor", &on->on);
	else
		json_null(j, "descriptor");
	if (on && on->kind == WAIT_EVENTS)
		put_set(j, &on->set);
	else
		json_null(j, "set");
	json_bool(j, "guessed", on && on->guessed);
	json_string(j, "path", on ? on->path : NULL);
	json_string(j, "remote_address", on ? on->address : NULL);
}

static void put_lock(struct json *j, const struct snap_wait *on)
{
	static const char *const names[LOCK_KIND_COUNT] = {"unknown", "flock", "fcntl", "ofd"};

	if (!on || on->kind != WAIT_FILE_LOCK) {
		json_null(j, "file_lock");
		return;
	}
	json_object(j, "file_lock");
	json_string(j, "kind", names[on->lock.kind]);
	json_bool(j, "writes", on->lock.writes);
	json_uint(j, "start", on->lock.start);
	if (on->lock.end == UINT64_MAX)
		json_null(j, "end");
	else
		json_uint(j, "end", on->lock.end);
	json_object_end(j);
}

/* Of a descriptor there is nothing in memory. */
static void put_place(struct json *j, const struct wait *w)
{
	if (!w->address && !w->word && !w->path && !w->variable) {
		json_members(j, "\"address\":null,\"module\":null,\"module_offset\":null,\"variable\":null,\"variable_offset\":null");
		return;
	}
	json_hex_or_null(j, "address", w->address || w->word, w->address ? w->address : w->word);
	json_string(j, "module", w->path);
	json_hex_or_null(j, "module_offset", w->path, w->offset);
	json_string(j, "variable", w->variable);
	json_hex_or_null(j, "variable_offset", w->variable, w->variable_offset);
}

static void put_owner(struct json *j, const struct wait *w)
{
	json_string(j, "holder", wait_holder_name(w->holder));
	if (!w->owner && !w->owner_pid && !w->type && !w->count) {
		json_members(j, "\"owner_tid\":null,\"owner_pid\":null,\"type\":null,\"count\":null");
	} else {
		json_int_or_null(j, "owner_tid", w->owner, w->owner);
		json_int_or_null(j, "owner_pid", w->owner_pid, w->owner_pid);
		json_string(j, "type", w->type);
		json_int_or_null(j, "count", w->count, (int64_t)w->count);
	}
	if (w->kind != WAIT_MUTEX)
		return;
	json_string(j, "mutex_type", mutex_type_name(w->mutex.type));
	json_bool(j, "robust", w->mutex.robust);
	json_bool(j, "inherits_priority", w->mutex.inherits);
}

static void put_limit(struct json *j, const struct wait *w)
{
	if (!w->timed && w->state.left == LEFT_UNKNOWN) {
		json_members(j, "\"timed\":false,\"left_ns\":null,\"left\":null");
		return;
	}
	json_bool(j, "timed", w->timed);
	json_int_or_null(j, "left_ns", w->state.left != LEFT_UNKNOWN, w->state.left_ns);
	json_string(j, "left", wait_left_name(w->state.left));
}

void json_wait(struct json *j, const struct wait *w)
{
	if (w->kind == WAIT_NOTHING) {
		json_null(j, "waits_for");
		return;
	}
	json_object(j, "waits_for");
	json_string(j, "kind", wait_kind_name(w->kind));
	put_place(j, w);
	put_owner(j, w);
	put_on(j, w->on);
	put_lock(j, w->on);
	put_peers(j, "peers", w->peers, w->npeers);
	json_bool(j, "peers_known", w->peers_known);
	json_bool(j, "shared", w->shared);
	put_limit(j, w);
	json_bool(j, "for_goroutines", w->for_goroutines);
	json_bool(j, "certain", w->certain);
	json_wait_state(j, w);
	json_object_end(j);
}
