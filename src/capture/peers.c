/* SPDX-License-Identifier: MIT */
#include "capture/peers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "capture/take.h"
#include "privilege/remedy.h"
#include "proc/family.h"
#include "proc/holders.h"
#include "target/filesystems.h"

enum {
	FEW_PROCESSES = 32, /* these are looked at in /proc before BPF is loaded */
	FEW_IN_SET = 8,	    /* descriptors whose other ends are searched for */
};

/* Fifos of two file systems may have the same inode. */
struct device {
	uint64_t number; /* 0: of pipes and sockets */
	struct u64map index; /* by kind and inode, in `things` */
};

struct peers {
	VEC(struct held) things;
	VEC(struct device) devices;
	const struct file_source *source;
};

/* The other end of a pipe is the same inode, that of a socket another one; 0: there is none, or it is not here. */
static uint64_t inode_of(const struct descriptor *d)
{
	return d->kind == DESCRIPTOR_SOCKET ? d->socket.peer : d->kind == DESCRIPTOR_PIPE || d->kind == DESCRIPTOR_FIFO ? d->inode : 0;
}

/* A socket whose other end is not known yet is known by itself. */
static uint64_t key_of(const struct descriptor *d)
{
	return inode_of(d) ? inode_of(d) * DESCRIPTOR_KIND_COUNT + d->kind : d->inode * DESCRIPTOR_KIND_COUNT + DESCRIPTOR_UNKNOWN;
}

static struct u64map *find_index(const struct peers *p, const struct descriptor *d)
{
	for (size_t i = 0; i < p->devices.len; i++)
		if (p->devices.data[i].number == d->device)
			return &p->devices.data[i].index;
	return NULL;
}

static uint64_t *put_key(struct peers *p, const struct descriptor *d, bool *created)
{
	struct u64map *index = find_index(p, d);

	if (!index && vec_push(&p->devices, (struct device){.number = d->device}))
		index = &p->devices.data[p->devices.len - 1].index;
	return index ? u64map_put(index, key_of(d), created) : NULL;
}

static int want(struct peers *p, pid_t pid, bool own_table, const struct descriptor *d)
{
	const uint64_t inode = inode_of(d);
	const struct tcp_ends *far = !inode && d->kind == DESCRIPTOR_SOCKET ? file_source_far(p->source, d->inode) : NULL;
	bool created;
	uint64_t *slot;

	if (!inode && !far)
		return 0;
	slot = put_key(p, d, &created);
	if (!slot)
		return -ENOMEM;
	if (!created) {
		struct held *known = &p->things.data[*slot];

		if (known->own_table && !own_table) { /* that of the process is found more surely */
			known->pid = pid;
			known->fd = d->fd;
			known->own_table = false;
		}
		return 0;
	}
	*slot = p->things.len;
	return vec_push(&p->things, (struct held){.kind = d->kind, .inode = inode, .device = d->device, .path = d->name, .pid = pid, .fd = d->fd,
						  .own_table = own_table, .far = far}) ? 0 : -ENOMEM;
}

static const struct held *find(const struct peers *p, const struct descriptor *d)
{
	const struct u64map *index = inode_of(d) || d->kind == DESCRIPTOR_SOCKET ? find_index(p, d) : NULL;
	const uint64_t *slot = index ? u64map_find(index, key_of(d)) : NULL;

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
	if (held->far)
		d->socket.peer = held->inode;
	d->peers = peers;
	d->npeers = n;
	/* A fifo may have another path elsewhere. If there were really nobody, it would not be waited for. */
	d->peers_known = held->holders.all && n && d->kind != DESCRIPTOR_FIFO;
	return peers ? 0 : -ENOMEM;
}

/* Of an epoll's descriptors only a single one tells who can end the wait. Those of poll() and select() are each of interest, such as the pipes from a child. */
static uint32_t count_in_set(const struct snap_wait *w)
{
	const uint32_t most = w->on.fd < 0 ? FEW_IN_SET : 1;

	return w->set.total <= most ? w->set.len : 0;
}

/* For each descriptor that a thread waits for, if these are few. */
static int visit(struct peers *p, struct besides *all, size_t n, bool found)
{
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; rc == 0 && k < all[i].snap->waits.len; k++) {
			struct snap_wait *w = &all[i].snap->waits.data[k];

			rc = found ? assign(p, all[i].snap, w->kind, &w->on) : want(p, all[i].snap->pid, w->own_table, &w->on);
			w->on.peers_known &= !w->guessed;
			for (uint32_t m = 0; rc == 0 && m < count_in_set(w); m++)
				rc = found ? assign(p, all[i].snap, w->kind, &w->set.data[m]) : want(p, all[i].snap->pid, w->own_table, &w->set.data[m]);
		}
	return rc;
}

/* Whether all who could end the wait are among the processes that are looked at: then it may be part of a deadlock. */
static bool has_peers_among(const struct besides *all, size_t n, const struct descriptor *d)
{
	for (uint32_t i = 0; i < d->npeers; i++) {
		size_t k = 0;

		while (k < n && all[k].snap->pid != d->peers[i].pid)
			k++;
		if (k == n)
			return false;
	}
	return d->npeers && d->peers_known;
}

/*
 * The descriptor is copied into our process for a moment, as nothing else tells. Not of other kinds of sockets: should the target close it
 * meanwhile, it would be we who close it, which may take as long as its other end likes (SO_LINGER).
 */
static bool is_endless(const struct process *process, const struct descriptor *d, bool writes)
{
	_cleanup_close_ int fd = process->pidfd >= 0 ? (int)syscall(SYS_pidfd_getfd, process->pidfd, d->fd, 0) : -1;
	struct timeval limit;
	socklen_t len = sizeof(limit);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == d->inode &&
	       getsockopt(fd, SOL_SOCKET, writes ? SO_SNDTIMEO : SO_RCVTIMEO, &limit, &len) == 0 && !limit.tv_sec && !limit.tv_usec;
}

static void find_limits(const struct besides *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < all[i].snap->waits.len; k++) {
			struct snap_wait *w = &all[i].snap->waits.data[k];

			if ((w->kind == WAIT_READ || w->kind == WAIT_WRITE) && !w->own_table && w->on.kind == DESCRIPTOR_SOCKET && w->on.socket.protocol &&
			    strcmp(w->on.socket.protocol, "unix") == 0 && has_peers_among(all, n, &w->on))
				w->on.socket.endless = is_endless(&all[i].capture->target->process, &w->on, w->kind == WAIT_WRITE);
		}
}

void peers_note_refusal(struct snapshot *snap, const char *what)
{
	char help[REMEDY_SIZE];

	remedy(REFUSED_PTRACE, help);
	notes_add(&snap->notes, "%s not searched for in processes that are not ours to look at: %s", what, help);
}

static void note_refusal(struct besides *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].snap->waits.len)
			peers_note_refusal(all[i].snap, "other ends of pipes and sockets are");
}

static bool are_many(void)
{
	struct tid_list pids = {0};
	const bool many = process_list_all(&pids) == 0 && pids.len > FEW_PROCESSES;

	vec_deinit(&pids);
	return many;
}

/* Mounts of a namespace that was not looked at yet are learned of. */
static bool is_local(int dir_fd, uint64_t mount)
{
	if (filesystems_is_local_mount(mount))
		return true;
	filesystems_learn(dir_fd);
	return filesystems_is_local_mount(mount);
}

/* By BPF, if that can be had; it is faster where there are many processes. */
static int find_holders(struct peers *p, const struct capture *capture, struct file_source *source, bool *refused)
{
	int rc = source->files || are_many() ? file_source_holders(source, capture, p->things.data, p->things.len) : -ENOENT;

	return rc == 0 || rc == -ENOMEM ? rc : holders_find(p->things.data, p->things.len, is_local, refused);
}

int find_peers(struct besides *all, size_t n, struct file_source *source)
{
	struct peers p = {.source = source};
	bool refused = false;
	int rc = visit(&p, all, n, false);

	if (rc == 0 && p.things.len) {
		rc = find_holders(&p, all[0].capture, source, &refused);
		if (refused)
			note_refusal(all, n);
		if (rc != -ENOMEM) /* what was found by then is right */
			rc = visit(&p, all, n, true);
		find_limits(all, n);
	}
	for (size_t i = 0; i < p.things.len; i++)
		vec_deinit(&p.things.data[i].holders);
	vec_deinit(&p.things);
	for (size_t i = 0; i < p.devices.len; i++)
		u64map_deinit(&p.devices.data[i].index);
	vec_deinit(&p.devices);
	return rc == -ENOMEM ? rc : 0;
}
