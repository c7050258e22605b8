/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "lib/abi.h"
#include "lib/handle.h"
#include "lib/stack.h"
#include "offcpu/session.h"
#include "offcpu/targets.h"
#include "report/offcpu_totals.h"
#include "target/patience.h"

enum { DEFAULT_MIN_NS = 1000000, LOOK_NS = 20 * 1000000 };

struct stakeout_waits {
	struct stakeout *owner;
	struct offcpu_targets targets;
	struct offcpu_session session;
	struct offcpu_profile profile;
	bool stopped;
	bool complete;
	uint64_t lost;
	struct notes notes;
};

DEFINE_CLEANUP(waits, struct stakeout_waits *, stakeout_waits_free)

void stakeout_waits_free(struct stakeout_waits *waits)
{
	if (!waits)
		return;
	offcpu_profile_deinit(&waits->profile);
	offcpu_session_deinit(&waits->session);
	offcpu_targets_deinit(&waits->targets);
	notes_deinit(&waits->notes);
	handle_leave(waits->owner);
	free(waits);
}

static int find_targets(struct stakeout_waits *waits, const pid_t *pids, size_t npids, struct err *err)
{
	const struct notes none = {0};
	struct process_ids ids = {0};
	int rc = process_check_mounted(err);

	for (size_t i = 0; rc == 0 && i < npids; i++)
		if (!vec_push(&ids, (struct process_id){.pid = pids[i]}))
			rc = err_set(err, ENOMEM, "out of memory");
	if (rc == 0)
		rc = offcpu_targets_take(&waits->targets, &ids, &none, err);
	vec_deinit(&ids);
	return rc;
}

static int start_session(struct stakeout_waits *waits, const struct stakeout_waits_options *o, bool all, struct err *err)
{
	bool user = !(o->flags & STAKEOUT_WAITS_NO_USER);
	const struct offcpu_session_options options = {
		.watch = {
			.pids = waits->targets.pids.data,
			.npids = waits->targets.pids.len,
			.all_processes = all,
			.children = o->flags & STAKEOUT_WAITS_CHILDREN,
			.by_thread = !(o->flags & STAKEOUT_WAITS_BY_PROCESS),
			.kernel_stacks = !(o->flags & STAKEOUT_WAITS_NO_KERNEL),
			.user_stacks = user,
			.runtimes = user && !(o->flags & STAKEOUT_WAITS_NO_RUNTIMES),
			.keep_native = o->flags & STAKEOUT_WAITS_RAW,
			.wakers = o->flags & STAKEOUT_WAITS_WAKERS,
			.filter = {
				.min_ns = o->min_ns ? o->min_ns : DEFAULT_MIN_NS,
				.max_ns = o->max_ns ? o->max_ns : UINT64_MAX,
				.sleeping = true,
				.uninterruptible = true,
				.runnable = true,
			},
			.names = waits->owner->names,
		},
	};

	return offcpu_session_start(&waits->session, &options, err);
}

static int start(struct stakeout *s, const pid_t *pids, size_t npids, const struct stakeout_waits_options *o,
		 struct err *err, struct stakeout_waits **out)
{
	_cleanup_(cleanup_waits) struct stakeout_waits *waits = calloc(1, sizeof(*waits));
	int rc;

	if (!waits)
		return err_set(err, ENOMEM, "out of memory");
	waits->owner = handle_use(s);
	rc = find_targets(waits, pids, npids, err);
	if (rc == 0)
		rc = start_session(waits, o, !npids, err);
	if (rc == 0)
		*out = steal_ptr(waits);
	return rc;
}

int stakeout_waits_start(struct stakeout *s, const pid_t *pids, size_t npids,
			 const struct stakeout_waits_options *options, struct stakeout_waits **out)
{
	const uint64_t flags = STAKEOUT_WAITS_CHILDREN | STAKEOUT_WAITS_NO_KERNEL | STAKEOUT_WAITS_NO_USER |
			       STAKEOUT_WAITS_NO_RUNTIMES | STAKEOUT_WAITS_RAW | STAKEOUT_WAITS_WAKERS |
			       STAKEOUT_WAITS_BY_PROCESS;
	const uint64_t stacks = STAKEOUT_WAITS_NO_KERNEL | STAKEOUT_WAITS_NO_USER;
	struct stakeout_waits_options o;
	int rc;

	*out = NULL;
	handle_begin(s);
	rc = abi_read_options(options, &o, sizeof(o), flags, &s->err);
	if (rc == 0 && (o.flags & stacks) == stacks)
		rc = err_set(&s->err, EINVAL, "neither kernel nor user stacks are wanted");
	if (rc == 0 && o.max_ns && o.max_ns < (o.min_ns ? o.min_ns : DEFAULT_MIN_NS))
		rc = err_set(&s->err, EINVAL, "no wait is as long as the least and as short as the most");
	if (rc == 0)
		rc = start(s, pids, npids, &o, &s->err, out);
	handle_end();
	return rc;
}

static bool is_over(const struct stakeout_waits *waits)
{
	return waits->session.watch->ops->is_over(waits->session.watch);
}

int stakeout_waits_sleep(struct stakeout_waits *waits, uint64_t ns)
{
	uint64_t start = monotonic_ns(), passed = 0;
	bool over, interrupted;

	handle_begin(waits->owner);
	for (;;) {
		struct timespec rest;

		over = is_over(waits);
		interrupted = patience_is_interrupted();
		if (passed >= ns || over || interrupted)
			break;
		rest = ns_to_timespec(ns - passed < LOOK_NS ? ns - passed : LOOK_NS);
		nanosleep(&rest, NULL);
		passed = monotonic_ns() - start;
	}
	handle_end();
	return interrupted ? err_set(&waits->owner->err, EINTR, "interrupted") : over;
}

static void tell_losses(struct stakeout_waits *waits)
{
	for (size_t i = 0; i < waits->profile.losses.len; i++) {
		const struct offcpu_loss *loss = &waits->profile.losses.data[i];

		waits->lost += loss->count;
		if (loss->count)
			notes_add(&waits->notes, "lost: %" PRIu64 " %s", loss->count, loss->name);
	}
}

static void gather_notes(struct stakeout_waits *waits)
{
	for (size_t i = 0; i < waits->targets.notes.len; i++)
		notes_add(&waits->notes, "%s", waits->targets.notes.data[i]);
	for (size_t i = 0; i < waits->profile.notes.len; i++)
		notes_add(&waits->notes, "%s", waits->profile.notes.data[i]);
	tell_losses(waits);
	waits->complete = offcpu_profile_is_complete(&waits->profile) && !waits->targets.missing;
	if (handle_tell(waits->owner, &waits->notes))
		waits->complete = false;
}

int stakeout_waits_stop(struct stakeout_waits *waits)
{
	struct watch *watch = waits->session.watch;
	int rc;

	if (waits->stopped)
		return err_set(&waits->owner->err, EALREADY, "it has been stopped already");
	handle_begin(waits->owner);
	waits->stopped = true;
	watch->ops->stop(watch);
	rc = watch->ops->finish(watch, &waits->owner->err, &waits->profile);
	if (rc == 0)
		gather_notes(waits);
	handle_end();
	return rc;
}

int stakeout_waits_summary(const struct stakeout_waits *waits, struct stakeout_waits_summary *out)
{
	const struct offcpu_profile *profile = &waits->profile;
	const struct stakeout_waits_summary s = {
		.complete = waits->complete,
		.estimate = profile->estimate,
		.method = profile->method,
		.start_ns = profile->start_ns,
		.duration_ns = profile->duration_ns,
		.count = profile->total.count,
		.total_ns = profile->total.total_ns,
		.lost = waits->lost,
		.nwaits = profile->rows.len,
		.nnotes = waits->notes.len,
	};

	return abi_write(out, &s, sizeof(s));
}

int stakeout_waits_wait(const struct stakeout_waits *waits, size_t index, struct stakeout_wait *out)
{
	const struct offcpu_row *row;
	struct stakeout_wait w;

	if (index >= waits->profile.rows.len)
		return -ERANGE;
	row = &waits->profile.rows.data[index];
	w = (struct stakeout_wait){
		.pid = row->pid,
		.tid = row->tid,
		.name = row->thread_name,
		.state = row->state,
		.idle = row->idle,
		.cause = offcpu_cause_name(row->cause),
		.count = row->sum.count,
		.unfinished = row->sum.unfinished,
		.total_ns = row->sum.total_ns,
		.min_ns = row->sum.min_ns,
		.max_ns = row->sum.max_ns,
		.runnable_ns = row->sum.runnable_ns,
		.user = stack_public(row->user),
		.kernel = stack_public(row->kernel),
		.user_problem = row->user_error,
		.kernel_problem = row->kernel_error,
	};
	if (row->has_waker) {
		w.waker_pid = row->waker.pid;
		w.waker_tid = row->waker.tid;
		w.waker_is_interrupt = row->waker.interrupt;
		w.waker_name = row->waker.name;
		w.waker_user = stack_public(row->waker.user);
		w.waker_kernel = stack_public(row->waker.kernel);
	}
	return abi_write(out, &w, sizeof(w));
}

const char *stakeout_waits_note(const struct stakeout_waits *waits, size_t note)
{
	return note < waits->notes.len ? waits->notes.data[note] : NULL;
}
