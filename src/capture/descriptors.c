/* SPDX-License-Identifier: MIT */
/* What threads wait for in calls on descriptors and files. */
#include "proc/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/besides.h"
#include "capture/blocking.h"
#include "capture/fd_tables.h"
#include "capture/looking.h"
#include "capture/peers.h"
#include "capture/take.h"

enum {
	REGISTERED_RING = 1 << 4, /* IORING_ENTER_REGISTERED_RING: what looks like a descriptor is none */
	RING_FLAGS = 3,		  /* the argument of io_uring_enter() that tells */
	MOST_MEMORY = 16 << 20,	  /* that is read of a process for all that */
};

/* A thread in such a call, and the memory that its arguments lead to. */
struct blocked {
	size_t at; /* of the snapshot's threads */
	uint64_t table; /* that it has for itself, see capture/fd_tables.h */
	const struct blocking_call *call;
	struct memory_job memory;
};

struct blockeds {
	VEC_FIELDS(struct blocked);
	uint64_t bytes;
};

/* Arguments in memory */

static uint64_t set_bytes(uint64_t nfds)
{
	return (nfds + 63) / 64 * 8;
}

/* Where the arguments of a call lead to, and how much of it is needed; select() has three pointers, which are dealt with one by one. */
static struct memory_job memory_of(const struct blocking_call *call, const struct snap_syscall *syscall)
{
	enum { MAX_PATH_BYTES = 4096, MAX_ADDRESS = 128, MAX_POLL = 1 << 20 };
	const uint64_t *args = syscall->args;

	if (call->form == BLOCKING_PATH)
		return (struct memory_job){.address = args[call->arg], .len = MAX_PATH_BYTES};
	if (call->kind == WAIT_CONNECT)
		return (struct memory_job){.address = args[1], .len = args[2] < MAX_ADDRESS ? args[2] : MAX_ADDRESS};
	if (call->form == BLOCKING_POLL)
		return (struct memory_job){.address = args[0], .len = (args[1] < MAX_POLL ? args[1] : MAX_POLL) * sizeof(struct pollfd)};
	return (struct memory_job){0};
}

/* The next one's begins at a multiple of 8, too. */
static size_t room_for(const struct memory_job *job)
{
	return (job->len + 7) / 8 * 8;
}

static int find_blocked(const struct besides *besides, struct blockeds *out)
{
	const struct fd_tables tables = fd_tables_of(besides);
	const struct snapshot *snap = besides->snap;

	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];
		struct blocked b = {.at = i, .call = blocking_call_of(snapshot_arch_of(snap, t), t)};

		if (!b.call)
			continue;
		b.table = fd_tables_own(&tables, t);
		b.memory = memory_of(b.call, &t->syscall);
		if (room_for(&b.memory) > MOST_MEMORY - out->bytes)
			b.memory.len = 0;
		out->bytes += room_for(&b.memory);
		if (!vec_push(out, b))
			return -ENOMEM;
	}
	return 0;
}

/* All of it at once. */
static int read_memory(struct besides *b, struct blockeds *all)
{
	struct bulk *bulk = all->bytes ? take_add_bulk(b->snap, all->bytes, 0) : NULL;
	uint8_t *dst = bulk ? bulk->data : NULL;
	VEC(struct memory_job) jobs = {0};
	size_t n = 0;

	if (!all->bytes)
		return 0;
	if (!bulk || !vec_reserve(&jobs, all->len))
		return -ENOMEM;
	for (size_t i = 0; i < all->len; i++) {
		struct memory_job *job = &all->data[i].memory;

		job->dst = dst;
		dst += room_for(job);
		if (job->len)
			jobs.data[jobs.len++] = *job;
	}
	memory_copy(&b->capture->target->memory, jobs.data, jobs.len);
	for (size_t i = 0; i < all->len; i++)
		if (all->data[i].memory.len)
			all->data[i].memory = jobs.data[n++];
	vec_deinit(&jobs);
	return 0;
}

/* Paths */

/* A path that does not begin at the root begins in a directory, which is a descriptor or the working directory. */
static int find_path(struct looking *l, const struct blocked *b, const struct snap_syscall *syscall, struct snap_wait *out)
{
	const struct process *process = &l->besides->capture->target->process;
	const char *path = (const char *)b->memory.dst;
	const size_t len = b->memory.done ? strnlen(path, b->memory.done) : 0;
	struct descriptor dir = {0};
	char base[4096];

	if (!len || len == b->memory.done)
		return -ENOENT;
	if (path[0] == '/') {
		out->path = arena_intern_n(l->snap->arena, path, len);
		return out->path ? 0 : -ENOMEM;
	}
	if (b->call->has_directory && (int)syscall->args[b->call->other] != AT_FDCWD) {
		if (looking_at(l, (int)syscall->args[b->call->other], &dir) < 0)
			return -ENOENT;
	} else if (process_working_directory(process, out->tid, base, sizeof(base)) > 0) {
		dir.name = base;
	}
	out->path = dir.name ? arena_printf(l->snap->arena, "%s/%.*s", strcmp(dir.name, "/") == 0 ? "" : dir.name, (int)len, path)
			     : arena_intern_n(l->snap->arena, path, len);
	return out->path ? 0 : -ENOMEM;
}

/* Sets */

static int find_polled(struct looking *l, const struct blocked *b, const struct snap_syscall *syscall, struct snap_wait *out)
{
	const struct pollfd *polled = (const struct pollfd *)b->memory.dst;
	const size_t n = b->memory.done / sizeof(*polled);
	struct descriptors_seen set = {0};
	int rc = n && n == (uint32_t)syscall->args[1] ? 0 : -ENOENT; /* without any it only sleeps */

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (polled[i].fd >= 0)
			rc = looking_add(l, &set, polled[i].fd, (uint16_t)polled[i].events);
	if (rc == 0)
		rc = set.len ? looking_keep(l, &set, &out->set) : -ENOENT;
	vec_deinit(&set);
	return rc;
}

/* The three bitmaps: a descriptor may be in several of them. */
static int find_selected(struct looking *l, const struct snap_syscall *syscall, struct snap_wait *out)
{
	enum { MAX_SELECTED = 1 << 16, SETS = 3, WORDS = MAX_SELECTED / 64 };
	static const uint32_t events[SETS] = {POLLIN, POLLOUT, POLLPRI};
	const uint64_t nfds = (uint32_t)syscall->args[0] < MAX_SELECTED ? (uint32_t)syscall->args[0] : MAX_SELECTED;
	_cleanup_free_ uint64_t *bits = calloc(SETS, WORDS * sizeof(*bits));
	struct memory_job jobs[SETS];
	struct descriptors_seen set = {0};
	size_t n = 0;
	int rc = 0;

	if (!bits)
		return -ENOMEM;
	for (size_t i = 0; i < SETS; i++)
		if (syscall->args[1 + i])
			jobs[n++] = (struct memory_job){.address = syscall->args[1 + i], .len = set_bytes(nfds), .dst = (uint8_t *)(bits + i * WORDS)};
	memory_copy(&l->besides->capture->target->memory, jobs, n);
	for (size_t i = 0; i < n; i++)
		rc = jobs[i].done < jobs[i].len ? -ENOENT : rc;
	for (uint64_t fd = 0; rc == 0 && fd < nfds; fd++) {
		uint32_t wanted = 0;

		for (size_t i = 0; i < SETS; i++)
			wanted |= bits[i * WORDS + fd / 64] >> fd % 64 & 1 ? events[i] : 0;
		if (wanted)
			rc = looking_add(l, &set, (int)fd, wanted);
	}
	if (rc == 0)
		rc = set.len ? looking_keep(l, &set, &out->set) : -ENOENT;
	vec_deinit(&set);
	return rc;
}

static int find_ring(struct looking *l, const struct snap_syscall *syscall, struct snap_wait *out)
{
	if (!(syscall->args[RING_FLAGS] & REGISTERED_RING))
		return looking_at(l, (int)syscall->args[0], &out->on);
	out->on.kind = DESCRIPTOR_IO_URING;
	return 0;
}

/* Two descriptors: the functions of the kernel tell which one is waited for. */

static bool is_in(const struct snap_thread *t, const char *const *names)
{
	for (uint32_t i = 0; t->kernel_text && i < t->nkernel; i++)
		for (size_t k = 0; t->kernel_text[i] && names[k]; k++)
			if (strstr(t->kernel_text[i], names[k]))
				return true;
	return false;
}

static int find_either(struct looking *l, const struct blocking_call *call, const struct snap_thread *t, struct snap_wait *out)
{
	static const char *const full[] = {"wait_for_space",  "pipe_wait_writable", "opipe_prep", "sk_stream_wait_memory",
					   "sock_alloc_send", "sock_wait_for_wmem", NULL};
	static const char *const empty[] = {"pipe_wait_readable", "ipipe_prep", "splice_from_pipe_next", "sk_wait_data", "unix_stream_data_wait", NULL};
	const bool sends = strncmp(call->name, "sendfile", strlen("sendfile")) == 0;

	out->kind = is_in(t, full) || (sends && t->state == 'S' && !is_in(t, empty)) ? WAIT_WRITE : WAIT_READ;
	out->guessed = !is_in(t, full) && !is_in(t, empty);
	return looking_at(l, (int)t->syscall.args[out->kind == WAIT_WRITE ? call->other : call->arg], &out->on);
}

/*
 * pread() and the like have one of their own. In 32-bit programs two arguments make it up, behind padding on some architectures; preadv2() may mean
 * that of the file, by -1.
 */
static int64_t offset_of(const struct arch *arch, const struct blocking_call *call, const struct snap_syscall *syscall, int64_t of_file)
{
	if (strncmp(call->name, "pread", 5) != 0 && strncmp(call->name, "pwrite", 6) != 0)
		return of_file;
	if (arch->word != 8)
		return -1;
	return (int64_t)syscall->args[3] == -1 ? of_file : (int64_t)syscall->args[3];
}

/* What it waits for, as far as it can be told. -ENOENT: it waits for nothing like that any more. */
static int look_at_call(struct looking *l, const struct blocked *b, const struct snap_thread *t, struct snap_wait *out)
{
	const struct snap_syscall *syscall = &t->syscall;
	int rc;

	switch (b->call->form) {
	case BLOCKING_PATH:
		return find_path(l, b, syscall, out);
	case BLOCKING_POLL:
		return find_polled(l, b, syscall, out);
	case BLOCKING_SELECT:
		return find_selected(l, syscall, out);
	case BLOCKING_TWO_FDS:
		return find_either(l, b->call, t, out);
	case BLOCKING_EPOLL:
		rc = looking_at(l, (int)syscall->args[b->call->arg], &out->on);
		return rc == 0 && out->on.kind == DESCRIPTOR_EPOLL ? looking_at_epoll(l, out->on.fd, &out->set) : rc;
	case BLOCKING_FD:
		break;
	}
	if (b->call->kind == WAIT_EVENTS)
		return find_ring(l, syscall, out);
	if (b->call->kind == WAIT_CONNECT)
		out->address = looking_at_address(l, b->memory.dst, b->memory.done);
	rc = looking_at(l, (int)syscall->args[b->call->arg], &out->on);
	if (rc == 0 && b->call->kind == WAIT_ACCEPT)
		looking_listens(l, &out->on);
	if (rc == 0 && b->call->kind == WAIT_WRITE && out->on.kind == DESCRIPTOR_PIPE && (out->on.flags & O_ACCMODE) == O_RDONLY)
		out->kind = WAIT_READ; /* vmsplice() goes by the end that it is given */
	if (rc == 0 && out->on.kind == DESCRIPTOR_FILE)
		out->on.offset = offset_of(snapshot_arch_of(l->snap, t), b->call, syscall, out->on.offset);
	return rc;
}

/* A descriptor that does not fit its call is another one that has got the number since. */
static bool fits(const struct blocking_call *call, const struct descriptor *d)
{
	if (call->kind == WAIT_ACCEPT || call->kind == WAIT_CONNECT)
		return d->kind == DESCRIPTOR_SOCKET;
	if (call->form == BLOCKING_FD && call->kind == WAIT_EVENTS)
		return d->kind == DESCRIPTOR_IO_URING;
	return call->form != BLOCKING_EPOLL || d->kind == DESCRIPTOR_EPOLL;
}

static int gather_of_thread(struct looking *l, const struct blocked *b)
{
	const struct snap_thread *t = &l->snap->threads.data[b->at];
	struct snap_wait wait = {.tid = t->tid, .kind = b->call->kind, .own_table = b->table, .on = {.fd = -1, .offset = -1, .left_ns = -1}};
	int rc = look_at_call(l, b, t, &wait);

	if (rc == -ENOMEM)
		return rc;
	if (rc < 0 || !fits(b->call, &wait.on))
		return 0;
	l->besides->gathered[b->at] = true;
	return vec_push(&l->snap->waits, wait) ? 0 : -ENOMEM;
}

/* Each once. */
static int read_epolls(struct looking *l, const struct blockeds *all)
{
	struct u64map known = {0};
	VEC(int) epolls = {0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < all->len; i++) {
		const struct snap_thread *t = &l->snap->threads.data[all->data[i].at];
		const int fd = (int)t->syscall.args[all->data[i].call->arg];
		struct descriptor d;
		bool created;

		if (all->data[i].call->form != BLOCKING_EPOLL || looking_at(l, fd, &d) < 0 || d.kind != DESCRIPTOR_EPOLL)
			continue;
		if (!u64map_put(&known, (uint32_t)fd, &created) || (created && !vec_push(&epolls, fd)))
			rc = -ENOMEM;
	}
	if (rc == 0)
		rc = looking_read_epolls(l, epolls.data, epolls.len);
	vec_deinit(&epolls);
	u64map_deinit(&known);
	return rc;
}

/* The descriptors that are in registers, and in sets that were read. */
static int look_ahead(struct looking *l, const struct blockeds *all)
{
	struct file_wants wants = {0};

	for (size_t i = 0; i < all->len; i++) {
		const struct blocked *b = &all->data[i];
		const struct pollfd *polled = (const struct pollfd *)b->memory.dst;

		file_wants_blocked(&wants, b->call, &l->snap->threads.data[b->at].syscall);
		for (size_t k = 0; b->call->form == BLOCKING_POLL && k < b->memory.done / sizeof(*polled); k++)
			if (polled[k].fd >= 0)
				file_wants_add(&wants, (uint64_t)polled[k].fd);
	}
	return looking_ahead(l, &wants);
}

/* Of threads that have the same table. */
static int gather_of_table(struct looking *l, const struct blockeds *blocked)
{
	int rc = look_ahead(l, blocked);

	if (rc == 0)
		rc = read_epolls(l, blocked);
	for (size_t i = 0; rc == 0 && i < blocked->len; i++)
		rc = gather_of_thread(l, &blocked->data[i]);
	return rc == 0 ? looking_find_sockets(l) : rc;
}

/* Moves those that have this table to `out`. */
static int take_those_of(struct blockeds *all, uint64_t table, struct blockeds *out)
{
	size_t kept = 0;

	out->len = 0;
	if (!vec_reserve(out, all->len))
		return -ENOMEM;
	for (size_t i = 0; i < all->len; i++)
		if (all->data[i].table == table)
			out->data[out->len++] = all->data[i];
		else
			all->data[kept++] = all->data[i];
	all->len = kept;
	return 0;
}

static int gather_of_process(struct besides *b, struct file_source *source, struct sockets *sockets)
{
	struct blockeds left = {0}, some = {0};
	int rc = find_blocked(b, &left);

	if (rc == 0)
		rc = read_memory(b, &left);
	while (rc == 0 && left.len) {
		const uint64_t table = left.data[0].table;
		struct looking l = {.besides = b, .snap = b->snap, .first = b->snap->waits.len, .source = source, .sockets = sockets};

		l.tid = table ? b->snap->threads.data[left.data[0].at].tid : 0;
		rc = take_those_of(&left, table, &some);
		if (rc == 0)
			rc = gather_of_table(&l, &some);
		looking_deinit(&l);
	}
	vec_deinit(&left);
	vec_deinit(&some);
	return rc;
}

int gather_descriptors(struct besides *all, size_t n)
{
	struct sockets sockets = {.diag = -1, .net = -1};
	struct file_source source = {0};
	int rc = 0;

	if (n == 1)
		file_source_take_ahead(&source, all[0].capture->ahead);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = gather_of_process(&all[i], &source, &sockets);
	sockets_close(&sockets);
	if (rc == 0)
		rc = find_peers(all, n, &source);
	file_source_deinit(&source);
	return rc;
}
