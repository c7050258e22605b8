/* SPDX-License-Identifier: MIT */
/* What threads wait for in calls on descriptors and files. */
#include "proc/descriptors.h"

#include <errno.h>

#include "base/map.h"
#include "capture/besides.h"
#include "capture/blocking.h"
#include "capture/peers.h"
#include "capture/take.h"
#include "privilege/remedy.h"
#include "target/filesystems.h"

/* The descriptors of one process: each is looked at once. */
struct looking {
	struct besides *besides;
	struct snapshot *snap;
	struct descriptors dirs;
	bool is_open, refused;
	struct u64map known; /* by number, in `seen` */
	VEC(struct descriptor) seen;
};

static void deinit(struct looking *l)
{
	if (l->is_open)
		descriptors_close(&l->dirs);
	u64map_deinit(&l->known);
	vec_deinit(&l->seen);
}

/* False when they cannot be seen. */
static bool open_directories(struct looking *l)
{
	char help[REMEDY_SIZE];
	int rc;

	if (l->is_open || l->refused)
		return l->is_open;
	rc = descriptors_open(&l->besides->capture->target->process, filesystems_is_local_mount, &l->dirs);
	l->is_open = rc == 0;
	l->refused = rc < 0;
	if (rc == -EACCES || rc == -EPERM)
		notes_add(&l->snap->notes, "which files and sockets threads wait for cannot be told: /proc/PID/fd is refused: %s",
			  remedy(REFUSED_PTRACE, help));
	return l->is_open;
}

/* 0, or -errno: -ENOENT when there is none with this number. */
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

/* What it waits for, as far as it can be told. -ENOENT: it waits for nothing like that any more. */
static int look_at_call(struct looking *l, const struct blocking_call *call, const struct snap_thread *t, struct snap_wait *out)
{
	if (call->form == BLOCKING_FD)
		return look(l, (int)t->syscall.args[call->arg], &out->on);
	return -ENOENT;
}

/* A descriptor that does not fit its call is another one that has got the number since. */
static bool fits(const struct blocking_call *call, const struct descriptor *d)
{
	if (call->kind == WAIT_ACCEPT || call->kind == WAIT_CONNECT)
		return d->kind == DESCRIPTOR_SOCKET;
	return call->form != BLOCKING_EPOLL || d->kind == DESCRIPTOR_EPOLL;
}

static int gather_of_thread(struct looking *l, size_t i)
{
	const struct snap_thread *t = &l->snap->threads.data[i];
	const struct blocking_call *call = blocking_call_of(snapshot_arch_of(l->snap, t), t);
	struct snap_wait wait;
	int rc;

	if (!call)
		return 0;
	wait = (struct snap_wait){.tid = t->tid, .kind = call->kind, .timed = blocking_is_timed(call, &t->syscall), .on = {.fd = -1}};
	rc = look_at_call(l, call, t, &wait);
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0 || !fits(call, &wait.on))
		return 0;
	l->besides->gathered[i] = true;
	return vec_push(&l->snap->waits, wait) ? 0 : -ENOMEM;
}

int gather_descriptors(struct besides *all, size_t n)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct looking l = {.besides = &all[i], .snap = all[i].snap};

		for (size_t k = 0; rc == 0 && k < l.snap->threads.len; k++)
			rc = gather_of_thread(&l, k);
		deinit(&l);
	}
	return rc == 0 ? find_peers(all, n) : rc;
}
