/* SPDX-License-Identifier: MIT */
#include "model/snapfile_waits.h"

#include <errno.h>
#include <inttypes.h>

enum {
	MAX_WAITS = 1000 * 1000,
	MAX_PEERS = 1 << 16,
	MAX_SET = 1 << 16,
	LEAST_DESCRIPTOR = 4 * 4, /* bytes; fewer cannot be one: bounds what a wrong number costs */
	LEAST_PEER = 2 * 4,
};

enum { SOCKET_ACCEPTED = 1, SOCKET_ENDLESS = 2 };

static void put_descriptor(struct bytes *b, const struct descriptor *d)
{
	const uint32_t npeers = d->npeers < MAX_PEERS ? d->npeers : MAX_PEERS;

	put_u32(b, (uint32_t)d->fd);
	put_u32(b, d->kind);
	put_string(b, d->name);
	put_u64(b, d->inode);
	put_u32(b, d->flags);
	put_u32(b, d->events);
	put_u64(b, (uint64_t)d->offset);
	put_u64(b, (uint64_t)d->left_ns);
	put_u64(b, d->count);
	put_u32(b, (uint32_t)d->pid);
	put_string(b, d->socket.protocol);
	put_string(b, d->socket.state);
	put_string(b, d->socket.local);
	put_string(b, d->socket.remote);
	put_u64(b, d->socket.peer);
	put_u32(b, d->socket.unread);
	put_u32(b, d->socket.unsent);
	put_u8(b, d->socket.listening);
	put_u8(b, (uint8_t)((d->socket.accepted ? SOCKET_ACCEPTED : 0) | (d->socket.endless ? SOCKET_ENDLESS : 0)));
	put_u8(b, d->peers_known && npeers == d->npeers);
	put_u32(b, npeers);
	for (uint32_t i = 0; i < npeers; i++) {
		put_u32(b, (uint32_t)d->peers[i].pid);
		put_string(b, d->peers[i].comm);
	}
}

/* Kinds of waits are written by name: their numbers may change. */
void put_wait(struct bytes *b, const struct snap_wait *w)
{
	put_u32(b, (uint32_t)w->tid);
	put_string(b, wait_kind_name(w->kind));
	put_u8(b, w->guessed);
	put_string(b, w->path);
	put_string(b, w->address);
	put_descriptor(b, &w->on);
	put_u32(b, w->set.total);
	put_u32(b, w->set.listeners);
	put_u32(b, DESCRIPTOR_KIND_COUNT);
	for (unsigned i = 0; i < DESCRIPTOR_KIND_COUNT; i++)
		put_u32(b, w->set.counts[i]);
	put_u32(b, w->set.len);
	for (uint32_t i = 0; i < w->set.len; i++)
		put_descriptor(b, &w->set.data[i]);
	put_u8(b, (uint8_t)w->lock.kind);
	put_u8(b, w->lock.writes);
	put_u64(b, w->lock.start);
	put_u64(b, w->lock.end);
}

/* How many records follow, each of so many bytes at least. */
static int get_count(struct cursor *c, uint32_t most, unsigned least, struct err *err, uint32_t *out)
{
	*out = cursor_u32(c);
	if (*out > most || *out > cursor_left(c) / least)
		return err_set(err, EINVAL, "%" PRIu32 " parts, which is too many", *out);
	return 0;
}

static int get_peers(struct cursor *c, struct snapshot *snap, struct err *err, struct descriptor *d)
{
	struct wait_peer *peers;
	int ret = get_count(c, MAX_PEERS, LEAST_PEER, err, &d->npeers);

	if (ret || !d->npeers)
		return ret;
	peers = arena_alloc(snap->arena, d->npeers * sizeof(*peers));
	if (!peers)
		return snapfile_no_memory(err);
	for (uint32_t i = 0; !ret && i < d->npeers; i++) {
		peers[i].pid = (pid_t)cursor_u32(c);
		ret = get_text(c, snap, err, &peers[i].comm);
		if (!peers[i].comm)
			peers[i].comm = "";
	}
	d->peers = peers;
	return ret;
}

static int get_socket(struct cursor *c, struct snapshot *snap, struct err *err, struct descriptor_socket *s)
{
	const char **const texts[] = {&s->protocol, &s->state, &s->local, &s->remote};
	uint8_t bits;
	int ret = 0;

	for (size_t i = 0; !ret && i < sizeof(texts) / sizeof(texts[0]); i++)
		ret = get_string(c, snap, err, texts[i]);
	s->peer = cursor_u64(c);
	s->unread = cursor_u32(c);
	s->unsent = cursor_u32(c);
	s->listening = cursor_u8(c);
	bits = cursor_u8(c);
	s->accepted = bits & SOCKET_ACCEPTED;
	s->endless = bits & SOCKET_ENDLESS;
	return ret;
}

static int get_descriptor(struct cursor *c, struct snapshot *snap, struct err *err, struct descriptor *d)
{
	uint32_t kind;
	int ret;

	d->fd = (int)cursor_u32(c);
	kind = cursor_u32(c);
	d->kind = kind < DESCRIPTOR_KIND_COUNT ? (enum descriptor_kind)kind : DESCRIPTOR_OTHER; /* of a later version */
	ret = get_string(c, snap, err, &d->name);
	d->inode = cursor_u64(c);
	d->flags = cursor_u32(c);
	d->events = cursor_u32(c);
	d->offset = (int64_t)cursor_u64(c);
	d->left_ns = (int64_t)cursor_u64(c);
	d->count = cursor_u64(c);
	d->pid = (pid_t)cursor_u32(c);
	if (!ret)
		ret = get_socket(c, snap, err, &d->socket);
	d->peers_known = cursor_u8(c);
	return ret ? ret : get_peers(c, snap, err, d);
}

static int get_set(struct cursor *c, struct snapshot *snap, struct err *err, struct descriptor_set *set)
{
	uint32_t kinds;
	int ret;

	set->total = cursor_u32(c);
	set->listeners = cursor_u32(c);
	ret = get_count(c, MAX_SET, sizeof(uint32_t), err, &kinds);
	for (uint32_t i = 0; !ret && i < kinds; i++)
		set->counts[i < DESCRIPTOR_KIND_COUNT ? i : DESCRIPTOR_OTHER] += cursor_u32(c);
	if (!ret)
		ret = get_count(c, MAX_SET, LEAST_DESCRIPTOR, err, &set->len);
	if (ret || !set->len)
		return ret;
	set->data = arena_alloc(snap->arena, set->len * sizeof(*set->data));
	if (!set->data)
		return snapfile_no_memory(err);
	for (uint32_t i = 0; !ret && i < set->len; i++)
		ret = get_descriptor(c, snap, err, &set->data[i]);
	return ret;
}

int get_wait(struct cursor *c, struct snapshot *snap, struct err *err)
{
	struct snap_wait w = {.tid = (pid_t)cursor_u32(c)};
	const char *kind;
	int ret = get_text(c, snap, err, &kind);

	w.guessed = cursor_u8(c);
	if (!ret)
		ret = get_string(c, snap, err, &w.path);
	if (!ret)
		ret = get_string(c, snap, err, &w.address);
	if (!ret)
		ret = get_descriptor(c, snap, err, &w.on);
	if (!ret)
		ret = get_set(c, snap, err, &w.set);
	if (!ret && cursor_left(c) >= 18) {
		const uint8_t lock = cursor_u8(c);

		w.lock.kind = lock < LOCK_KIND_COUNT ? (enum lock_kind)lock : LOCK_NONE;
		w.lock.writes = cursor_u8(c);
		w.lock.start = cursor_u64(c);
		w.lock.end = cursor_u64(c);
	}
	if (ret || c->bad)
		return ret;
	w.kind = wait_kind_named(kind);
	if (!wait_is_on_descriptors(w.kind))
		return 0; /* of a later version */
	if (snap->waits.len >= MAX_WAITS)
		return err_set(err, EINVAL, "more than %d waits", MAX_WAITS);
	return vec_push(&snap->waits, w) ? 0 : snapfile_no_memory(err);
}
