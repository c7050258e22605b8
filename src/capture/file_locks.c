/* SPDX-License-Identifier: MIT */
/* What threads wait for in flock() and fcntl(): a lock on a file, and who has it. */
#include "proc/file_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "capture/besides.h"
#include "capture/fd_tables.h"
#include "capture/peers.h"
#include "capture/take.h"
#include "proc/descriptors.h"
#include "target/filesystems.h"

enum { COMMAND_SETLKW = 7, COMMAND_SETLKW64 = 14, COMMAND_OFD_SETLKW = 38 }; /* of the kernel; of 32 bits, the second */

/* A thread that waits for one. */
struct waiter {
	struct besides *besides;
	size_t at; /* in its snapshot's threads */
	struct snap_wait wait;
	struct locked_file file;
	bool has_range;
	size_t held; /* in `held`; SIZE_MAX: it is not known who has it */
};

struct gathering {
	VEC(struct waiter) waiters;
	struct file_locks locks;
	VEC(struct held_lock) held;
};

static enum lock_kind kind_of_call(const struct snapshot *snap, const struct snap_thread *t)
{
	const struct syscall_info *info = t->syscall.state == SYSCALL_IN ? arch_syscall(snapshot_arch_of(snap, t), t->syscall.nr) : NULL;

	if (!info || t->state == 'R' || t->status != THREAD_CAPTURED)
		return LOCK_NONE;
	if (strcmp(info->name, "flock") == 0)
		return LOCK_BY_FLOCK;
	if (strcmp(info->name, "fcntl") != 0 && strcmp(info->name, "fcntl64") != 0)
		return LOCK_NONE;
	return t->syscall.args[1] == COMMAND_OFD_SETLKW ? LOCK_BY_OFD
	       : t->syscall.args[1] == COMMAND_SETLKW || t->syscall.args[1] == COMMAND_SETLKW64 ? LOCK_BY_FCNTL : LOCK_NONE;
}

/* What it wants is in its memory; where that is in the file may depend on other things. */
static void read_wish(struct waiter *w, const struct snap_thread *t)
{
	struct mem *mem = &w->besides->capture->target->memory.mem;
	struct wanted_lock *lock = &w->wait.lock;
	struct flock wish; /* as 64-bit programs have it */

	if (lock->kind == LOCK_BY_FLOCK) {
		lock->writes = t->syscall.args[1] & LOCK_EX;
		lock->end = UINT64_MAX;
		w->has_range = true;
		return;
	}
	if (snapshot_arch_of(w->besides->snap, t)->word != 8 || mem->read(mem, t->syscall.args[2], &wish, sizeof(wish)) != sizeof(wish))
		return;
	lock->writes = wish.l_type == F_WRLCK;
	w->has_range = wish.l_whence == SEEK_SET && wish.l_start >= 0 && wish.l_len >= 0;
	lock->start = w->has_range ? (uint64_t)wish.l_start : 0;
	lock->end = w->has_range && wish.l_len ? lock->start + (uint64_t)wish.l_len - 1 : UINT64_MAX;
}

static int add_waiter(struct gathering *g, struct besides *b, size_t at, const struct descriptors *dirs, struct mount_list *mounts)
{
	const struct snap_thread *t = &b->snap->threads.data[at];
	struct waiter w = {.besides = b, .at = at, .held = SIZE_MAX, .wait = {.tid = t->tid, .kind = WAIT_FILE_LOCK, .on = {.fd = -1}}};
	int rc = descriptors_read(dirs, (int)t->syscall.args[0], b->snap->arena, &w.wait.on);

	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	w.wait.lock.kind = kind_of_call(b->snap, t);
	if (w.wait.on.name && w.wait.on.name[0] == '/' && !descriptor_is_device(w.wait.on.name)) /* others, such as an epoll, may not answer */
		(void)file_locks_find_file(mounts, t->tid, (int)t->syscall.args[0], &w.file);
	read_wish(&w, t);
	return vec_push(&g->waiters, w) ? 0 : -ENOMEM;
}

static int find_waiters(struct gathering *g, struct besides *b)
{
	const struct fd_tables tables = fd_tables_of(b);
	struct mount_list mounts = {.process = &b->capture->target->process};
	struct descriptors dirs;
	uint64_t table = 0;
	bool is_open = false;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < b->snap->threads.len; i++) {
		const struct snap_thread *t = &b->snap->threads.data[i];
		uint64_t own;

		if (kind_of_call(b->snap, t) == LOCK_NONE)
			continue;
		own = fd_tables_own(&tables, t);
		if (is_open && own != table)
			descriptors_close(&dirs);
		is_open = is_open && own == table;
		table = own;
		if (!is_open && descriptors_open(&b->capture->target->process, own ? t->tid : 0, filesystems_is_local_mount, &dirs) < 0)
			break; /* the gatherer of descriptors has said so */
		is_open = true;
		rc = add_waiter(g, b, i, &dirs, &mounts);
	}
	if (is_open)
		descriptors_close(&dirs);
	mount_list_deinit(&mounts);
	return rc;
}

/* Whether a line may be what the thread waits for. */
static bool is_wish(const struct file_lock *line, const struct waiter *w)
{
	const struct wanted_lock *wish = &w->wait.lock;

	if (!line->waits || line->lock.kind != wish->kind || line->pid != (wish->kind == LOCK_BY_OFD ? -1 : w->besides->snap->pid))
		return false;
	if (w->file.inode && (line->inode != w->file.inode || line->dev_major != w->file.dev_major || line->dev_minor != w->file.dev_minor))
		return false;
	return !w->has_range || (line->lock.writes == wish->writes && line->lock.start == wish->start && line->lock.end == wish->end);
}

/* The line of the lock that it waits for; NULL: there is none, or several may be meant. The kernel knows which bytes are meant. */
static const struct file_lock *find_held(const struct file_locks *locks, struct waiter *w)
{
	const struct file_lock *had = NULL, *found = NULL;

	for (size_t i = 0; i < locks->len; i++) {
		const struct file_lock *line = &locks->data[i];

		if (!line->waits)
			had = line;
		if (!is_wish(line, w) || !had || had->id != line->id)
			continue;
		if (found && found != had)
			return NULL;
		found = had;
		w->wait.lock = line->lock;
	}
	return found;
}

static int find_all_held(struct gathering *g)
{
	for (size_t i = 0; i < g->waiters.len; i++) {
		struct waiter *w = &g->waiters.data[i];
		const struct file_lock *lock = find_held(&g->locks, w);

		for (size_t k = 0; lock && k < g->held.len; k++)
			if (g->held.data[k].lock == lock)
				w->held = k;
		if (!lock || w->held != SIZE_MAX)
			continue;
		w->held = g->held.len;
		if (!vec_push(&g->held, (struct held_lock){.lock = lock}))
			return -ENOMEM;
	}
	return 0;
}

static int keep(const struct gathering *g, struct waiter *w)
{
	const struct held_lock *held = w->held == SIZE_MAX ? NULL : &g->held.data[w->held];
	struct snapshot *snap = w->besides->snap;
	struct wait_peer *peers = held ? arena_alloc(snap->arena, held->holders.len * sizeof(*peers) + 1) : NULL;

	if (held && !peers)
		return -ENOMEM;
	for (size_t i = 0; held && i < held->holders.len; i++)
		peers[i] = (struct wait_peer){.pid = held->holders.data[i].pid, .comm = arena_intern(snap->arena, held->holders.data[i].comm)};
	w->wait.on.peers = peers;
	w->wait.on.npeers = held ? (uint32_t)held->holders.len : 0;
	w->wait.on.peers_known = held && held->holders.all && !g->locks.cut;
	w->wait.on.offset = -1; /* it has nothing to do with that */
	w->besides->gathered[w->at] = true;
	return vec_push(&snap->waits, w->wait) ? 0 : -ENOMEM;
}

static void deinit(struct gathering *g)
{
	for (size_t i = 0; i < g->held.len; i++)
		vec_deinit(&g->held.data[i].holders);
	vec_deinit(&g->held);
	vec_deinit(&g->locks);
	vec_deinit(&g->waiters);
}

int gather_file_locks(struct besides *all, size_t n)
{
	struct gathering g = {0};
	bool refused = false;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = find_waiters(&g, &all[i]);
	if (rc == 0 && g.waiters.len)
		rc = file_locks_read(&g.locks);
	if (rc == 0)
		rc = find_all_held(&g);
	if (rc == 0 && g.held.len)
		rc = file_locks_find_holders(g.held.data, g.held.len, &refused);
	for (size_t i = 0; rc != -ENOMEM && i < g.waiters.len; i++) {
		rc = keep(&g, &g.waiters.data[i]);
		if (refused && (i == 0 || g.waiters.data[i].besides != g.waiters.data[i - 1].besides))
			peers_note_refusal(g.waiters.data[i].besides->snap, "who has a lock on a file is");
	}
	deinit(&g);
	return rc == -ENOMEM ? rc : 0;
}
