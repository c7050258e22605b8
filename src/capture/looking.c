/* SPDX-License-Identifier: MIT */
#include "capture/looking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/take.h"
#include "privilege/remedy.h"
#include "target/filesystems.h"
#include "target/helper.h"
#include "target/patience.h"

enum {
	MOST_KEPT = 1024, /* of a set; all are counted */
	MOST_EPOLLS = 1024,
	MOST_INFO = 32 << 20, /* bytes that tell what they watch, of all of them */
};

void looking_deinit(struct looking *l)
{
	if (l->is_open)
		descriptors_close(&l->dirs);
	u64map_deinit(&l->known);
	vec_deinit(&l->seen);
	vec_deinit(&l->told);
	vec_deinit(&l->epolls);
	wanted_sockets_deinit(&l->wanted);
	wanted_sockets_deinit(&l->listening);
	for (size_t i = 0; i < l->crowds.len; i++)
		free(l->crowds.data[i].inodes);
	vec_deinit(&l->crowds);
}

/* False when they cannot be seen. */
static bool open_directories(struct looking *l)
{
	char help[REMEDY_SIZE];
	int rc;

	if (l->is_open || l->refused)
		return l->is_open;
	rc = descriptors_open(&l->besides->capture->target->process, l->tid, filesystems_is_local_mount, &l->dirs);
	l->is_open = rc == 0;
	l->refused = rc < 0;
	if (rc == -EACCES || rc == -EPERM)
		notes_add(&l->snap->notes, "which files and sockets threads wait for cannot be told: /proc/PID/fd is refused: %s",
			  remedy(REFUSED_PTRACE, help));
	return l->is_open;
}

static int want_socket(struct looking *l, const struct descriptor *d, bool wants_peer)
{
	struct wanted_socket *wanted = d->kind == DESCRIPTOR_SOCKET ? wanted_sockets_add(&l->wanted, d->inode, d->fd) : NULL;

	if (wanted)
		wanted->wants_peer |= wants_peer;
	return wanted || d->kind != DESCRIPTOR_SOCKET ? 0 : -ENOMEM;
}

static int look(struct looking *l, int fd, struct descriptor *out)
{
	bool created;
	uint64_t *slot;
	int rc;

	if (!open_directories(l))
		return -EACCES;
	slot = u64map_put(&l->known, (uint32_t)fd, &created);
	if (!slot)
		return -ENOMEM;
	if (!created) {
		*out = l->seen.data[*slot];
		return out->kind == DESCRIPTOR_UNKNOWN ? -ENOENT : 0;
	}
	*slot = l->seen.len;
	rc = descriptors_read(&l->dirs, fd, l->snap->arena, out);
	if (rc < 0)
		out->kind = DESCRIPTOR_UNKNOWN;
	return vec_push(&l->seen, *out) ? rc : -ENOMEM;
}

/* Whose table it is. */
static pid_t table_owner(const struct looking *l)
{
	return l->tid ? l->tid : l->besides->capture->target->process.mm_tid; /* the main thread may have ended */
}

/* What is not shown is looked at in /proc when it is asked for. */
int looking_ahead(struct looking *l, const struct file_wants *wants)
{
	const size_t n = file_wants_count(wants);
	const struct file_record *record;
	const struct file_look *shown;
	size_t pos = 0;

	if (n <= FEW_FILES || !open_directories(l))
		return 0;
	shown = file_source_of(l->source, l->besides->capture, table_owner(l), wants);
	if (!shown)
		return 0;
	l->looked_ahead = true;
	if (!u64map_reserve(&l->known, n) || !u64map_reserve(&l->wanted.by_inode, n))
		return -ENOMEM;
	while ((record = file_records_next(&shown->records, &pos))) {
		struct descriptor d;
		bool created;
		uint64_t *slot = u64map_put(&l->known, record->fd, &created);

		if (!slot || !file_source_describe(record, l->snap->arena, &d))
			return -ENOMEM;
		*slot = created ? l->seen.len : *slot;
		if (created && !vec_push(&l->seen, d))
			return -ENOMEM;
		if (record->kind == FILE_TCP && !vec_push(&l->told, ((struct told_socket){.file = *record, .tcp = *file_tcp_of(record)})))
			return -ENOMEM;
	}
	return 0;
}

int looking_at(struct looking *l, int fd, struct descriptor *out)
{
	int rc = look(l, fd, out);

	return rc == 0 ? want_socket(l, out, true) : rc;
}

void looking_listens(struct looking *l, const struct descriptor *d)
{
	struct wanted_socket *wanted = d->kind == DESCRIPTOR_SOCKET ? wanted_sockets_add(&l->wanted, d->inode, d->fd) : NULL;

	if (wanted)
		wanted->listens = true;
}

int looking_add(struct looking *l, struct descriptors_seen *set, int fd, uint32_t events)
{
	struct descriptor d;
	int rc = look(l, fd, &d);

	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		d = (struct descriptor){.fd = fd, .offset = -1, .left_ns = -1};
	d.events = events;
	return vec_push(set, d) ? 0 : -ENOMEM;
}

static int add_crowd(struct looking *l, const struct descriptors_seen *set, const struct descriptor *kept)
{
	struct crowd crowd = {.kept = kept, .inodes = calloc(set->len, sizeof(*crowd.inodes))};

	for (size_t i = 0; crowd.inodes && i < set->len; i++) {
		if (set->data[i].kind != DESCRIPTOR_SOCKET)
			continue;
		crowd.inodes[crowd.len++] = set->data[i].inode;
		if (!wanted_sockets_add(&l->listening, set->data[i].inode, set->data[i].fd))
			break;
	}
	if (crowd.inodes && vec_push(&l->crowds, crowd))
		return 0;
	free(crowd.inodes);
	return -ENOMEM;
}

int looking_keep(struct looking *l, const struct descriptors_seen *set, struct descriptor_set *out)
{
	int rc = 0;

	*out = (struct descriptor_set){.total = (uint32_t)set->len, .len = set->len < MOST_KEPT ? (uint32_t)set->len : MOST_KEPT};
	out->data = arena_alloc(l->snap->arena, out->len * sizeof(*out->data) + 1);
	if (!out->data)
		return -ENOMEM;
	for (size_t i = 0; rc == 0 && i < set->len; i++) {
		out->counts[set->data[i].kind]++;
		if (set->len == out->len)
			rc = want_socket(l, &set->data[i], set->len == 1);
		if (i < out->len)
			out->data[i] = set->data[i];
	}
	return rc == 0 && set->len > out->len ? add_crowd(l, set, out->data) : rc;
}

/*
 * A line of an epoll's tells the inode. That the descriptor is still the same one is seen by that; of sockets, of which there may be very
 * many, no more is read, once it is known by which number their file system goes.
 */
static int add_watched(struct looking *l, struct descriptors_seen *set, const struct watched_descriptor *w)
{
	struct descriptor *d;
	int rc;

	if (l->socket_device && w->device == l->socket_device) {
		struct descriptor socket = {.fd = w->fd, .kind = DESCRIPTOR_SOCKET, .inode = w->inode, .events = w->events, .offset = -1, .left_ns = -1};

		socket.name = set->len < MOST_KEPT ? descriptor_name(DESCRIPTOR_SOCKET, w->inode, l->snap->arena) : NULL;
		return vec_push(set, socket) ? 0 : -ENOMEM;
	}
	rc = looking_add(l, set, w->fd, w->events);
	d = rc == 0 ? &set->data[set->len - 1] : NULL;
	if (d && d->kind == DESCRIPTOR_SOCKET && d->inode == w->inode)
		l->socket_device = w->device;
	else if (d && d->inode && d->inode != w->inode) /* it was closed here, and the number given to another */
		*d = (struct descriptor){.fd = w->fd, .events = w->events, .offset = -1, .left_ns = -1};
	return rc;
}

static int keep_epoll(struct looking *l, int epoll, const uint8_t *info, size_t len)
{
	struct watched_descriptors watched = {0};
	struct descriptors_seen set = {0};
	struct epoll_seen seen = {.fd = epoll};
	int rc = descriptors_watched(info, len, &watched) ? 0 : -ENOMEM;

	for (size_t i = 0; rc == 0 && i < watched.len; i++)
		rc = add_watched(l, &set, &watched.data[i]);
	if (rc == 0)
		rc = looking_keep(l, &set, &seen.set);
	if (rc == 0 && !vec_push(&l->epolls, seen))
		rc = -ENOMEM;
	vec_deinit(&watched);
	vec_deinit(&set);
	return rc;
}

/* For the helper: the lengths of all files, and behind these their bytes. */
struct epoll_reading {
	int infos;
	const int *epolls;
	size_t n;
};

static void read_epolls(void *arg, uint8_t *window, struct helper_reply *reply)
{
	const struct epoll_reading *r = arg;
	uint64_t *lens = (uint64_t *)window;
	size_t at = r->n * sizeof(*lens);

	for (size_t i = 0; i < r->n; i++) {
		ssize_t got = at < MOST_INFO ? descriptors_info(r->infos, r->epolls[i], window + at, MOST_INFO - at) : 0;

		lens[i] = got > 0 ? (uint64_t)got : 0;
		at += lens[i];
	}
	reply->len = at;
}

int looking_read_epolls(struct looking *l, const int *epolls, size_t n)
{
	struct epoll_reading reading = {.epolls = epolls, .n = n < MOST_EPOLLS ? n : MOST_EPOLLS};
	struct helper_task task = {.run = read_epolls, .arg = &reading, .window = MOST_INFO, .keep = {-1, -1, -1, -1}};
	_cleanup_free_ uint8_t *bytes = NULL;
	struct helper_reply reply;
	size_t at = reading.n * sizeof(uint64_t);
	int rc = 0;

	if (!reading.n || !open_directories(l) || l->dirs.infos < 0)
		return 0;
	reading.infos = task.keep[0] = l->dirs.infos;
	rc = helper_run(&task, &reply, &bytes);
	if (rc == -ETIMEDOUT)
		patience_complain("what epolls of process %d watch cannot be told: somebody who waits for memory has one of them locked", (int)l->snap->pid);
	for (size_t i = 0; rc == 0 && bytes && i < reading.n; i++) {
		uint64_t len = ((const uint64_t *)bytes)[i];

		rc = keep_epoll(l, epolls[i], bytes + at, len);
		at += len;
	}
	return rc == -ENOMEM ? rc : 0;
}

int looking_at_epoll(const struct looking *l, int epoll, struct descriptor_set *out)
{
	for (size_t i = 0; i < l->epolls.len; i++)
		if (l->epolls.data[i].fd == epoll) {
			*out = l->epolls.data[i].set;
			return 0;
		}
	return -ENOENT;
}

const char *looking_at_address(struct looking *l, const void *address, size_t len)
{
	return socket_address(address, len, l->snap->arena);
}

static void describe(const struct looking *l, struct descriptor *d)
{
	const struct wanted_socket *wanted = d->kind == DESCRIPTOR_SOCKET ? wanted_sockets_find(&l->wanted, d->inode) : NULL;

	if (!wanted && d->kind == DESCRIPTOR_SOCKET)
		wanted = wanted_sockets_find(&l->listening, d->inode);
	if (wanted)
		d->socket = wanted->facts;
}

static bool listens(const struct looking *l, uint64_t inode)
{
	const struct wanted_socket *wanted = wanted_sockets_find(&l->listening, inode);

	return wanted && wanted->facts.listening;
}

static uint32_t count_listeners(const struct looking *l, const struct descriptor_set *set)
{
	uint32_t n = 0;

	for (size_t i = 0; set->total > set->len && i < l->crowds.len; i++)
		for (size_t k = 0; l->crowds.data[i].kept == set->data && k < l->crowds.data[i].len; k++)
			n += listens(l, l->crowds.data[i].inodes[k]);
	for (uint32_t i = 0; set->total == set->len && i < set->len; i++)
		n += set->data[i].socket.listening;
	return n;
}

static void open_sockets(struct looking *l)
{
	const struct process *process = &l->besides->capture->target->process;

	if (sockets_are_of(l->sockets, process))
		return;
	sockets_close(l->sockets);
	if (sockets_open(process, l->sockets) < 0)
		notes_add(&l->snap->notes, "what the sockets are that threads wait for cannot be told: neither SOCK_DIAG nor /proc/PID/net can be used");
}

static int tell_socket(struct looking *l, const struct file_record *record)
{
	const struct wanted_socket *wanted = record->kind == FILE_TCP ? wanted_sockets_find(&l->wanted, record->inode) : NULL;

	return !wanted || wanted->found || file_source_tell(record, &l->wanted, l->snap->arena) ? 0 : -ENOMEM;
}

static bool wants_more(const struct looking *l)
{
	for (size_t i = 0; i < l->wanted.len; i++)
		if (!l->wanted.data[i].found && !l->wanted.data[i].listens)
			return true;
	return false;
}

/* Those that were looked at one by one, by BPF if it tells of sockets. Of those that it does not tell of the kernel is asked. */
static int tell_sockets(struct looking *l)
{
	const struct file_look *shown;
	struct file_wants wants = {0};
	size_t pos = 0;
	int rc = 0;

	if (l->looked_ahead || !wants_more(l) || !file_source_tells_tcp(l->source, l->besides->capture))
		return 0;
	for (size_t i = 0; i < l->wanted.len; i++)
		file_wants_add(&wants, (uint64_t)l->wanted.data[i].fd);
	shown = file_source_of(l->source, l->besides->capture, table_owner(l), &wants);
	for (const struct file_record *record; shown && rc == 0 && (record = file_records_next(&shown->records, &pos));)
		rc = tell_socket(l, record);
	return rc;
}

int looking_find_sockets(struct looking *l)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->told.len; i++)
		rc = tell_socket(l, &l->told.data[i].file);
	if (rc == 0)
		rc = tell_sockets(l);
	if (l->wanted.len || l->listening.len)
		open_sockets(l);
	l->listening.only_listening = true;
	if (rc == 0 && l->wanted.len)
		rc = sockets_find(l->sockets, &l->wanted, &l->dirs, l->snap->arena);
	if (rc == 0 && l->listening.len)
		rc = sockets_find(l->sockets, &l->listening, &l->dirs, l->snap->arena);
	for (size_t i = 0; rc == 0 && i < l->wanted.len; i++)
		rc = file_source_keep_far(l->source, &l->wanted.data[i]) ? 0 : -ENOMEM;
	for (size_t i = l->first; rc == 0 && i < l->snap->waits.len; i++) {
		struct snap_wait *w = &l->snap->waits.data[i];

		describe(l, &w->on);
		if (w->kind == WAIT_CONNECT && w->address && w->on.socket.protocol && strcmp(w->on.socket.protocol, "unix") == 0)
			w->on.socket.peer = sockets_find_listener(l->sockets, w->address);
		for (uint32_t k = 0; k < w->set.len; k++)
			describe(l, &w->set.data[k]);
		w->set.listeners = count_listeners(l, &w->set);
	}
	return rc;
}
