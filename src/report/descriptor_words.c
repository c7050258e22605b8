/* SPDX-License-Identifier: MIT */
#include "report/descriptor_words.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "report/shorten.h"

enum {
	MOST_PEERS = 4, /* that are named */
	FEW = 3,	/* descriptors of a set are told one by one */
	MOST_ENDS = 3,	/* of the sockets of a group */
};

/* One and several. */
static const struct {
	const char *one, *several;
} nouns[DESCRIPTOR_KIND_COUNT] = {
	[DESCRIPTOR_UNKNOWN] = {"unknown descriptor", "unknown descriptors"},
	[DESCRIPTOR_FILE] = {"file", "files"},
	[DESCRIPTOR_DIRECTORY] = {"directory", "directories"},
	[DESCRIPTOR_PIPE] = {"pipe", "pipes"},
	[DESCRIPTOR_FIFO] = {"fifo", "fifos"},
	[DESCRIPTOR_SOCKET] = {"socket", "sockets"},
	[DESCRIPTOR_EVENTFD] = {"eventfd", "eventfds"},
	[DESCRIPTOR_TIMERFD] = {"timer", "timers"},
	[DESCRIPTOR_SIGNALFD] = {"signalfd", "signalfds"},
	[DESCRIPTOR_INOTIFY] = {"inotify", "inotifies"},
	[DESCRIPTOR_FANOTIFY] = {"fanotify", "fanotifies"},
	[DESCRIPTOR_EPOLL] = {"epoll", "epolls"},
	[DESCRIPTOR_PIDFD] = {"pidfd", "pidfds"},
	[DESCRIPTOR_IO_URING] = {"io_uring", "io_urings"},
	[DESCRIPTOR_TERMINAL] = {"terminal", "terminals"},
	[DESCRIPTOR_DEVICE] = {"device", "devices"},
	[DESCRIPTOR_FUSE] = {"requests to a FUSE server", "requests to FUSE servers"},
	[DESCRIPTOR_USERFAULTFD] = {"userfaultfd", "userfaultfds"},
	[DESCRIPTOR_OTHER] = {"other descriptor", "other descriptors"},
};

/* One descriptor */

static void put_socket(const struct text *t, const struct descriptor *d)
{
	const struct descriptor_socket *s = &d->socket;

	if (!s->protocol) {
		fprintf(t->out, "socket %" PRIu64, d->inode);
		return;
	}
	text_untrusted(t, s->protocol);
	if (s->local || s->remote)
		fputc(' ', t->out);
	if (s->local)
		text_untrusted(t, s->local);
	if (s->remote) {
		fputs(s->local ? " → " : "→ ", t->out);
		text_untrusted(t, s->remote);
	}
	if (s->state) {
		fputs(" (", t->out);
		text_untrusted(t, s->state);
		fputc(')', t->out);
	}
}

static void put_timer(const struct text *t, const struct descriptor *d)
{
	char left[DURATION_LEN];

	if (d->left_ns < 0)
		fputs("timer, which is not set", t->out);
	else
		fprintf(t->out, "timer, which expires in %s", format_duration((uint64_t)d->left_ns, left));
}

/* "fd 7: …" */
static void put_descriptor(const struct text *t, const struct descriptor *d)
{
	fprintf(t->out, "fd %d: ", d->fd);
	switch (d->kind) {
	case DESCRIPTOR_PIPE:
		fprintf(t->out, "pipe %" PRIu64, d->inode);
		break;
	case DESCRIPTOR_SOCKET:
		put_socket(t, d);
		break;
	case DESCRIPTOR_TIMERFD:
		put_timer(t, d);
		break;
	case DESCRIPTOR_EVENTFD:
		fprintf(t->out, "eventfd, whose count is %" PRIu64, d->count);
		break;
	case DESCRIPTOR_PIDFD:
		fputs("pidfd", t->out);
		if (d->pid > 0)
			fprintf(t->out, " of pid %d", (int)d->pid);
		break;
	case DESCRIPTOR_FIFO:
	case DESCRIPTOR_TERMINAL:
		fprintf(t->out, "%s ", nouns[d->kind].one);
		text_untrusted(t, d->name ? d->name : "?");
		break;
	case DESCRIPTOR_FILE:
	case DESCRIPTOR_DIRECTORY:
	case DESCRIPTOR_DEVICE:
	case DESCRIPTOR_FUSE:
	case DESCRIPTOR_OTHER:
		text_untrusted(t, d->name ? d->name : nouns[d->kind].one);
		break;
	default:
		fputs(nouns[d->kind].one, t->out);
		break;
	}
}

static void put_offset(const struct text *t, const struct descriptor *d)
{
	if (d->kind == DESCRIPTOR_FILE && d->offset >= 0)
		fprintf(t->out, ", at byte %" PRId64, d->offset);
}

/* Whether it has nothing, or no room. */
static void put_fill(const struct text *t, const struct descriptor *d, enum wait_kind kind)
{
	const bool is_pipe = d->kind == DESCRIPTOR_PIPE || d->kind == DESCRIPTOR_FIFO;

	if (is_pipe && kind == WAIT_READ)
		fputs(", which is empty", t->out);
	else if (is_pipe && kind == WAIT_WRITE)
		fputs(", which is full", t->out);
	else if (d->kind == DESCRIPTOR_SOCKET && kind == WAIT_WRITE && d->socket.unsent)
		fprintf(t->out, ", which is full: %" PRIu32 " bytes are not sent", d->socket.unsent);
	else if (d->kind == DESCRIPTOR_SOCKET && kind == WAIT_WRITE)
		fputs(", which is full", t->out);
	else if (d->kind == DESCRIPTOR_SOCKET && kind == WAIT_READ && d->socket.unread)
		fprintf(t->out, ", %" PRIu32 " bytes are there", d->socket.unread);
}

/* Of a pipe. Who waits to read there waits for whoever reads to go away. */
static bool is_write_end(const struct descriptor *d)
{
	return (d->kind == DESCRIPTOR_PIPE || d->kind == DESCRIPTOR_FIFO) && (d->flags & O_ACCMODE) == O_WRONLY;
}

static const char *word_for(const struct descriptor *d)
{
	const bool reads = d->events & (POLLIN | POLLRDNORM), writes = d->events & (POLLOUT | POLLWRNORM);

	if (d->socket.listening)
		return "accept on ";
	if (!reads && !writes && d->events & POLLPRI)
		return d->kind == DESCRIPTOR_SOCKET ? "read urgent data of " : "see a change of ";
	if (!writes && (!reads || is_write_end(d)))
		return "see the end of ";
	return reads && writes ? "read or write " : writes ? "write " : "read ";
}

/* Sets */

/* The only socket of a set tells more than that there is one; NULL: there are none, or several. */
static const struct descriptor *only_socket(const struct descriptor_set *set)
{
	for (uint32_t i = 0; set->counts[DESCRIPTOR_SOCKET] == 1 && i < set->len; i++)
		if (set->data[i].kind == DESCRIPTOR_SOCKET && set->data[i].socket.protocol)
			return &set->data[i];
	return NULL;
}

static void put_counts(const struct text *t, const uint32_t counts[static DESCRIPTOR_KIND_COUNT], uint32_t listeners, const struct descriptor *only)
{
	const char *separator = "";

	for (unsigned kind = 0; kind < DESCRIPTOR_KIND_COUNT; kind++) {
		if (!counts[kind])
			continue;
		if (kind == DESCRIPTOR_SOCKET && only) {
			fputs(separator, t->out);
			put_socket(t, only);
			separator = ", ";
			continue;
		}
		fprintf(t->out, "%s%" PRIu32 " %s", separator, counts[kind], counts[kind] == 1 ? nouns[kind].one : nouns[kind].several);
		if (kind == DESCRIPTOR_SOCKET && listeners)
			fprintf(t->out, " (%" PRIu32 " listening)", listeners);
		separator = ", ";
	}
	if (!*separator)
		fputs("nothing", t->out);
}

/* All that the members wait for, each with its own. */
static void put_sum(const struct text *t, const struct trace_thread *const *members, size_t count)
{
	uint32_t counts[DESCRIPTOR_KIND_COUNT] = {0}, listeners = 0;
	bool same = true;

	for (size_t i = 0; i < count; i++) {
		const struct descriptor_set *set = &members[i]->wait.on->set;

		same &= memcmp(set->counts, members[0]->wait.on->set.counts, sizeof(set->counts)) == 0;
		for (unsigned kind = 0; kind < DESCRIPTOR_KIND_COUNT; kind++)
			counts[kind] += set->counts[kind];
		listeners += set->listeners;
	}
	if (same)
		put_counts(t, members[0]->wait.on->set.counts, members[0]->wait.on->set.listeners, count == 1 ? only_socket(&members[0]->wait.on->set) : NULL);
	else
		put_counts(t, counts, listeners, NULL);
	if (count > 1)
		fputs(same ? " each" : " together", t->out);
}

static void put_names_of_peers(const struct text *t, const char *words, const struct wait_peer *peers, uint32_t n, const struct snapshot *own, bool braces)
{
	fprintf(t->out, ", %s ", words);
	if (n == 1 && peers[0].pid == own->pid) {
		fputs("this process itself", t->out);
		return;
	}
	for (uint32_t i = 0; i < n && i < MOST_PEERS; i++) {
		fprintf(t->out, braces ? "%spid %d (" : "%spid %d ", i ? ", " : "", (int)peers[i].pid);
		text_untrusted(t, peers[i].comm);
		fputs(braces ? ")" : "", t->out);
	}
	fputs(n > MOST_PEERS ? ", …" : "", t->out);
}

/* One of a set, with who has its other end. */
static void put_member(const struct text *t, const struct trace_thread *thread, const struct descriptor *d)
{
	fputs(word_for(d), t->out);
	put_descriptor(t, d);
	if (d->npeers)
		put_names_of_peers(t, d->kind == DESCRIPTOR_SOCKET ? "at the other end" : is_write_end(d) ? "read by" : "written by", d->peers, d->npeers,
				   thread->snap, false);
}

/* Of the only one it is told behind it: put_peers(). */
static void put_few(const struct text *t, const struct trace_thread *thread)
{
	const struct descriptor_set *set = &thread->wait.on->set;

	if (set->len == 1) {
		fputs(word_for(&set->data[0]), t->out);
		put_descriptor(t, &set->data[0]);
		return;
	}
	for (uint32_t i = 0; i < set->len; i++) {
		fputs(i ? ", or to " : "", t->out);
		put_member(t, thread, &set->data[i]);
	}
}

static bool is_same_fd(const struct trace_thread *const *members, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (members[i]->snap != members[0]->snap || members[i]->wait.on->on.fd != members[0]->wait.on->on.fd)
			return false;
	return true;
}

static void put_events(const struct text *t, const struct trace_thread *const *members, size_t count)
{
	const struct snap_wait *w = members[0]->wait.on;
	const bool several = count > 1;

	fputs(several ? "wait " : "waits ", t->out);
	if (w->on.kind == DESCRIPTOR_IO_URING) {
		fputs(several ? "for completions of io_urings" : "for completions of ", t->out);
		if (!several)
			put_descriptor(t, &w->on);
		return;
	}
	if (w->on.fd < 0 && !several && w->set.total <= FEW && w->set.len == w->set.total) {
		fputs("to ", t->out);
		put_few(t, members[0]);
		return;
	}
	fputs(members[0]->wait.for_goroutines ? "on behalf of goroutines for events of " : "for events of ", t->out);
	if (w->on.fd >= 0 && is_same_fd(members, count))
		fprintf(t->out, "epoll fd %d: ", w->on.fd);
	else if (w->on.fd >= 0)
		fputs("epolls: ", t->out);
	put_sum(t, members, count);
}

/* Threads on one descriptor, or several of a kind */

static const char *verb_of(const struct trace_thread *thread, bool several)
{
	const struct snapshot *snap = thread->snap;
	const struct syscall_info *info = arch_syscall(snapshot_arch_of(snap, thread->thread), thread->thread->syscall.nr);

	switch (thread->wait.kind) {
	case WAIT_READ:
		return several ? "read " : "reads ";
	case WAIT_WRITE:
		return several ? "write " : "writes ";
	case WAIT_SYNC:
		if (thread->wait.state.medium) /* which is told behind it, and need not be a disk */
			return several ? "sync " : "syncs ";
		return several ? "wait for the disk, which is to have " : "waits for the disk, which is to have ";
	case WAIT_ACCEPT:
		return several ? "wait for connections on " : "waits for connections on ";
	case WAIT_CONNECT:
		return several ? "connect " : "connects ";
	case WAIT_OPEN:
		if (info && strstr(info->name, "open"))
			return several ? "open " : "opens ";
		return several ? "look up " : "looks up ";
	default:
		return several ? "wait in ioctl() of " : "waits in ioctl() of ";
	}
}

/* "waits for a write lock (fcntl) on bytes 0 to 99 of fd 3: /var/lib/x" */
static void put_lock(const struct text *t, const struct trace_thread *const *members, size_t count)
{
	static const char *const ways[LOCK_KIND_COUNT] = {"", " (flock)", " (fcntl)", " (fcntl, of an open file)"};
	const struct snap_wait *w = members[0]->wait.on;

	fprintf(t->out, "%s for a %s lock%s on ", count > 1 ? "wait" : "waits", w->lock.writes ? "write" : "read", ways[w->lock.kind]);
	if (w->lock.end != UINT64_MAX)
		fprintf(t->out, "bytes %" PRIu64 " to %" PRIu64 " of ", w->lock.start, w->lock.end);
	else if (w->lock.start)
		fprintf(t->out, "all from byte %" PRIu64 " on of ", w->lock.start);
	if (is_same_fd(members, count))
		put_descriptor(t, &w->on);
	else
		text_untrusted(t, w->on.name ? w->on.name : "a file");
}

/* Which end of a socket tells what it is for: its own if others connect to that, else the other one. */
static const char *telling_end(const struct descriptor_socket *s, bool *own)
{
	*own = !s->remote || s->accepted;
	return *own ? s->local : s->remote;
}

/* "tcp sockets of clients of 10.0.0.5:8080: 10.0.0.9:41022, …" */
static void put_sockets(const struct text *t, const struct trace_thread *const *members, size_t count)
{
	const struct descriptor_socket *s = &members[0]->wait.on->on.socket;
	bool own;
	const char *end = telling_end(s, &own);

	fprintf(t->out, "%s sockets", s->protocol ? s->protocol : "other");
	if (!end)
		return;
	fputs(own ? " of clients of " : " → ", t->out);
	text_untrusted(t, end);
	for (size_t i = 0; own && s->remote && i < count; i++) {
		if (i == MOST_ENDS) {
			fputs(", …", t->out);
			break;
		}
		fputs(i ? ", " : ": ", t->out);
		text_untrusted(t, members[i]->wait.on->on.socket.remote ? members[i]->wait.on->on.socket.remote : "?");
	}
}

static void put_target(const struct text *t, const struct trace_thread *const *members, size_t count)
{
	const struct snap_wait *w = members[0]->wait.on;
	const struct descriptor *d = &w->on;

	if (w->kind == WAIT_OPEN) {
		text_untrusted(t, w->path ? w->path : "a file");
	} else if (is_same_fd(members, count)) {
		put_descriptor(t, d);
		if (count == 1)
			put_offset(t, d);
		put_fill(t, d, w->kind);
	} else if (d->kind == DESCRIPTOR_SOCKET) {
		put_sockets(t, members, count);
	} else if ((d->kind == DESCRIPTOR_FILE || d->kind == DESCRIPTOR_FIFO || d->kind == DESCRIPTOR_TERMINAL || d->kind == DESCRIPTOR_DEVICE) && d->name) {
		text_untrusted(t, d->name);
		put_fill(t, d, w->kind);
	} else {
		fputs(nouns[d->kind].several, t->out);
	}
	if (w->kind == WAIT_CONNECT && w->address && !d->socket.remote) {
		fputs(" to ", t->out);
		text_untrusted(t, w->address);
	}
}

void descriptor_put_doing(const struct text *t, const struct trace_thread *const *members, size_t count)
{
	if (members[0]->wait.kind == WAIT_EVENTS) {
		put_events(t, members, count);
	} else if (members[0]->wait.kind == WAIT_FILE_LOCK) {
		put_lock(t, members, count);
	} else {
		fputs(verb_of(members[0], count > 1), t->out);
		put_target(t, members, count);
		if (members[0]->wait.on->guessed)
			fputs(", or waits for the other descriptor of the call", t->out);
	}
}

/* Other ends */

static int compare_peers(const struct wait *a, const struct wait *b)
{
	int order = COMPARE(a->npeers, b->npeers);

	for (uint32_t i = 0; !order && i < a->npeers; i++)
		order = COMPARE(a->peers[i].pid, b->peers[i].pid);
	return order;
}

/* What it is that the peers do. */
static const char *word_for_peers(const struct wait *w)
{
	const struct descriptor *d = w->kind == WAIT_EVENTS ? w->on->set.data : &w->on->on;

	if (w->kind == WAIT_FILE_LOCK)
		return "held by";
	if (d->kind == DESCRIPTOR_SOCKET)
		return w->kind == WAIT_CONNECT ? "which is of" : "at the other end";
	return w->kind == WAIT_WRITE || (w->kind == WAIT_EVENTS && is_write_end(d)) ? "read by" : "written by";
}

static void put_peers(const struct text *t, const struct trace_thread *const *members, size_t count)
{
	const struct wait *w = &members[0]->wait;

	for (size_t i = 1; i < count; i++)
		if (compare_peers(w, &members[i]->wait) != 0)
			return;
	if (!w->npeers)
		return;
	put_names_of_peers(t, word_for_peers(w), w->peers, w->npeers, members[0]->snap, w->kind == WAIT_FILE_LOCK);
}

void descriptor_put_peers(const struct text *t, const struct trace_thread *const *members, size_t count)
{
	put_peers(t, members, count);
	if (count == 1 && !members[0]->wait.certain)
		fputs(" (not certain: it may have gone on)", t->out);
}

void descriptor_put_set(const struct text *t, const struct trace_thread *thread, const char *indent)
{
	const struct descriptor_set *set = &thread->wait.on->set;

	for (uint32_t i = 0; i < set->len; i++) {
		fputs(indent, t->out);
		put_member(t, thread, &set->data[i]);
		fputc('\n', t->out);
	}
	if (set->total > set->len)
		fprintf(t->out, "%sand %" PRIu32 " more\n", indent, set->total - set->len);
}

/* Sockets are the same by their protocol and the end that tells what they are for; other things by name, or by who has their other end. */
static int compare_descriptors(const struct trace_thread *a, const struct trace_thread *b)
{
	const struct descriptor *x = &a->wait.on->on, *y = &b->wait.on->on;
	const bool has_name = x->kind == DESCRIPTOR_FILE || x->kind == DESCRIPTOR_FIFO || x->kind == DESCRIPTOR_TERMINAL || x->kind == DESCRIPTOR_DEVICE;
	int order = COMPARE(x->kind, y->kind);

	if (!order && x->kind == DESCRIPTOR_SOCKET) {
		bool own, others;
		const char *end = telling_end(&x->socket, &own), *other = telling_end(&y->socket, &others);

		order = compare_texts(x->socket.protocol, y->socket.protocol);
		order = order ? order : COMPARE(own, others);
		order = order ? order : compare_texts(end, other);
		if (order || end)
			return order; /* whoever is at the other end */
	}
	if (!order && has_name)
		order = compare_texts(x->name, y->name);
	return order ? order : compare_peers(&a->wait, &b->wait);
}

/* A few that are told one by one; all others are one group. */
static int compare_sets(const struct trace_thread *a, const struct trace_thread *b)
{
	const struct snap_wait *x = a->wait.on, *y = b->wait.on;
	const bool few = x->on.fd < 0 && x->set.total <= FEW, others = y->on.fd < 0 && y->set.total <= FEW;
	int order = COMPARE(few, others);

	if (!order)
		order = COMPARE(a->wait.for_goroutines, b->wait.for_goroutines);
	if (!order && !few) /* of a pool some may have nobody to serve */
		order = COMPARE(x->set.counts[DESCRIPTOR_SOCKET] > x->set.listeners, y->set.counts[DESCRIPTOR_SOCKET] > y->set.listeners);
	if (!order && !few)
		return COMPARE(x->on.kind, y->on.kind);
	if (!order)
		order = COMPARE(x->set.total, y->set.total);
	for (unsigned kind = 0; !order && kind < DESCRIPTOR_KIND_COUNT; kind++)
		order = COMPARE(x->set.counts[kind], y->set.counts[kind]);
	return order;
}

static int compare_locks(const struct wanted_lock *a, const struct wanted_lock *b)
{
	int order = COMPARE(a->kind, b->kind);

	order = order ? order : COMPARE(a->writes, b->writes);
	order = order ? order : COMPARE(a->start, b->start);
	return order ? order : COMPARE(a->end, b->end);
}

int descriptor_wait_compare(const struct trace_thread *a, const struct trace_thread *b)
{
	const struct wait *x = &a->wait, *y = &b->wait;
	int order = COMPARE(x->kind, y->kind);

	if (!order)
		order = COMPARE(x->timed, y->timed);
	if (!order && x->kind == WAIT_EVENTS)
		return compare_sets(a, b);
	if (!order && x->kind == WAIT_OPEN)
		order = compare_texts(x->on->path, y->on->path);
	if (!order && x->kind == WAIT_FILE_LOCK)
		order = compare_locks(&x->on->lock, &y->on->lock);
	if (!order && x->kind == WAIT_CONNECT)
		order = compare_texts(x->on->address, y->on->address);
	return order ? order : compare_descriptors(a, b);
}
