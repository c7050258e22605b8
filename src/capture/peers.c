/* SPDX-License-Identifier: MIT */
#include "capture/peers.h"

#include <errno.h>
#include <fcntl.h>

#include "base/map.h"
#include "privilege/remedy.h"
#include "proc/family.h"
#include "proc/holders.h"

enum { FEW_PROCESSES = 32 }; /* these are looked at in /proc before BPF is loaded */

struct peers {
	VEC(struct held) things;
	struct u64map index; /* by kind and inode, in `things` */
};

/* The other end of a pipe is the same inode, that of a socket another one; 0: there is none, or it is not here. */
static uint64_t inode_of(const struct descriptor *d)
{
	return d->kind == DESCRIPTOR_SOCKET ? d->socket.peer : d->kind == DESCRIPTOR_PIPE || d->kind == DESCRIPTOR_FIFO ? d->inode : 0;
}

static uint64_t key_of(const struct descriptor *d)
{
	return inode_of(d) * DESCRIPTOR_KIND_COUNT + d->kind;
}

static int want(struct peers *p, pid_t pid, const struct descriptor *d)
{
	const uint64_t inode = inode_of(d);
	bool created;
	uint64_t *slot;

	if (!inode)
		return 0;
	slot = u64map_put(&p->index, key_of(d), &created);
	if (!slot)
		return -ENOMEM;
	if (!created)
		return 0;
	*slot = p->things.len;
	return vec_push(&p->things, (struct held){.kind = d->kind, .inode = inode, .path = d->name, .pid = pid, .fd = d->fd}) ? 0 : -ENOMEM;
}

static const struct held *find(const struct peers *p, const struct descriptor *d)
{
	const uint64_t *slot = inode_of(d) ? u64map_find(&p->index, key_of(d)) : NULL;

	return slot ? &p->things.data[*slot] : NULL;
}

/* Who can end the wait: a reader waits for whoever writes, and a writer for whoever reads; who waits for events, by the end that it has. */
static bool is_peer(const struct holder *h, const struct descriptor *d, enum wait_kind kind)
{
	const uint32_t mode = kind == WAIT_WRITE ? O_WRONLY : kind == WAIT_EVENTS ? d->flags & O_ACCMODE : O_RDONLY;

	return d->kind == DESCRIPTOR_SOCKET || (mode != O_RDONLY && h->reads) || (mode != O_WRONLY && h->writes);
}

static int assign(const struct peers *p, struct snapshot *snap, enum wait_kind kind, struct descriptor *d)
{
	const struct held *held = find(p, d);
	struct wait_peer *peers = held ? arena_alloc(snap->arena, held->holders.len * sizeof(*peers) + 1) : NULL;
	uint32_t n = 0;

	if (!held)
		return 0;
	for (size_t i = 0; peers && i < held->holders.len; i++)
		if (is_peer(&held->holders.data[i], d, kind))
			peers[n++] = (struct wait_peer){.pid = held->holders.data[i].pid, .comm = arena_intern(snap->arena, held->holders.data[i].comm)};
	d->peers = peers;
	d->npeers = n;
	/* A fifo may have another path elsewhere. If there were really nobody, it would not be waited for. */
	d->peers_known = held->all && n && d->kind != DESCRIPTOR_FIFO;
	return peers ? 0 : -ENOMEM;
}

/* For each descriptor that a thread waits for by itself. */
static int visit(struct peers *p, struct besides *all, size_t n, bool found)
{
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; rc == 0 && k < all[i].snap->waits.len; k++) {
			struct snap_wait *w = &all[i].snap->waits.data[k];

			rc = found ? assign(p, all[i].snap, w->kind, &w->on) : want(p, all[i].snap->pid, &w->on);
			w->on.peers_known &= !w->guessed;
			if (rc == 0 && w->set.total == 1)
				rc = found ? assign(p, all[i].snap, w->kind, &w->set.data[0]) : want(p, all[i].snap->pid, &w->set.data[0]);
		}
	return rc;
}

static void note_refusal(struct besides *all, size_t n)
{
	char help[REMEDY_SIZE];

	remedy(REFUSED_PTRACE, help);
	for (size_t i = 0; i < n; i++)
		if (all[i].snap->waits.len)
			notes_add(&all[i].snap->notes, "other ends of pipes and sockets are not searched for in processes that are not ours to look at: %s", help);
}

static bool are_many(void)
{
	struct tid_list pids = {0};
	const bool many = process_list_all(&pids) == 0 && pids.len > FEW_PROCESSES;

	vec_deinit(&pids);
	return many;
}

/* By BPF, if that can be had; it is faster where there are many processes. */
static int find_holders(struct peers *p, const struct capture *capture, struct file_source *source, bool *refused)
{
	struct open_files *files = source->files || are_many() ? file_source_get(source, capture) : NULL;
	int rc = files ? file_source_holders(files, p->things.data, p->things.len) : -ENOENT;

	return rc == 0 || rc == -ENOMEM ? rc : holders_find(p->things.data, p->things.len, refused);
}

int find_peers(struct besides *all, size_t n, struct file_source *source)
{
	struct peers p = {0};
	bool refused = false;
	int rc = visit(&p, all, n, false);

	if (rc == 0 && p.things.len) {
		rc = find_holders(&p, all[0].capture, source, &refused);
		if (refused)
			note_refusal(all, n);
		if (rc != -ENOMEM) /* what was found by then is right */
			rc = visit(&p, all, n, true);
	}
	for (size_t i = 0; i < p.things.len; i++)
		vec_deinit(&p.things.data[i].holders);
	vec_deinit(&p.things);
	u64map_deinit(&p.index);
	return rc == -ENOMEM ? rc : 0;
}
