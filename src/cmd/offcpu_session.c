/* SPDX-License-Identifier: MIT */
#include "cmd/offcpu_session.h"

#include <errno.h>

#include "offcpu/feed/tables.h"

enum {
	RING_BYTES = 8 << 20, /* for stacks that are new */
	EVENTS_BYTES = 16 << 20,
};

static struct recording_options recording_options(const struct offcpu_options *o, const struct offcpu_pids *pids,
						  const struct child *child)
{
	static const enum offcpu_rung rungs[] = {
		[OFFCPU_SOURCE_AUTO] = OFFCPU_RUNG_AUTO,     [OFFCPU_SOURCE_SCHED_EXIT] = OFFCPU_RUNG_SCHED_EXIT,
		[OFFCPU_SOURCE_KPROBE] = OFFCPU_RUNG_KPROBE, [OFFCPU_SOURCE_SWITCH] = OFFCPU_RUNG_SWITCH,
		[OFFCPU_SOURCE_PROC] = OFFCPU_RUNG_AUTO, /* none is taken */
	};

	return (struct recording_options){
		.probe =
			{
				.rung = rungs[o->source],
				.min_ns = o->min_ns,
				.max_ns = o->max_ns,
				.all_processes = o->all,
				.children = o->children,
				.kernel_stacks = o->kernel,
				.user_stacks = o->user,
				.wakers = o->wakers,
				.only_new = child->pid != 0, /* the command waits for us: that is none of its own waits */
				.events = o->events,
				.sleeping = o->states & OFFCPU_WANT_S,
				.uninterruptible = o->states & OFFCPU_WANT_D,
				.runnable = o->states & OFFCPU_WANT_R,
				.ring_bytes = o->events ? EVENTS_BYTES : RING_BYTES,
				.max_mappings = TABLES_MAX_MAPPINGS,
			},
		.pids = child->pid ? &child->pid : pids->data,
		.npids = child->pid ? 1 : pids->len,
		.by_thread = o->threads,
		.names = {.demangle = !o->view.no_demangle, .symbols = o->view.naming.symbols},
	};
}

static struct sampler_options sampler_options(const struct recording_options *from, const char *why)
{
	return (struct sampler_options){
		.pids = from->pids,
		.npids = from->npids,
		.all_processes = from->probe.all_processes,
		.children = from->probe.children,
		.by_thread = from->by_thread,
		.kernel_stacks = from->probe.kernel_stacks,
		.user_stacks = from->probe.user_stacks,
		.sleeping = from->probe.sleeping,
		.uninterruptible = from->probe.uninterruptible,
		.wakers = from->probe.wakers,
		.min_ns = from->probe.min_ns,
		.max_ns = from->probe.max_ns,
		.why = why,
		.names = from->names,
	};
}

void offcpu_session_deinit(struct offcpu_session *session)
{
	recording_destroy(session->recording);
	sampler_destroy(session->sampler);
}

int offcpu_session_start(struct offcpu_session *session, const struct offcpu_options *o, const struct offcpu_pids *pids,
			 const struct child *child, struct err *err)
{
	const struct recording_options options = recording_options(o, pids, child);
	struct sampler_options sampling;
	struct err why = {0};
	int rc;

	if (o->source != OFFCPU_SOURCE_PROC) {
		rc = recording_start(&options, &why, &session->recording);
		if (rc == 0)
			return 0;
		if (rc == -ENOMEM || o->source != OFFCPU_SOURCE_AUTO)
			return err_set(err, -rc, "%s", why.msg);
		if (o->events)
			return err_set(err, -rc, "%s; --events needs BPF", why.msg);
	}
	sampling = sampler_options(&options, why.msg[0] ? why.msg : NULL);
	rc = sampler_start(&sampling, err, &session->sampler);
	if (rc == -EINVAL && why.msg[0])
		return err_set(err, -rc, "%s", why.msg); /* that is what kept from the better way */
	return rc;
}

struct recording_progress offcpu_session_progress(const struct offcpu_session *session)
{
	struct sampler_progress progress;

	if (session->recording)
		return recording_progress(session->recording);
	progress = sampler_progress(session->sampler);
	return (struct recording_progress){.waits = progress.waits, .lost = progress.lost};
}

bool offcpu_session_is_over(const struct offcpu_session *session)
{
	return session->recording ? recording_is_over(session->recording) : sampler_is_over(session->sampler);
}

void offcpu_session_stop(struct offcpu_session *session)
{
	if (session->recording)
		recording_stop(session->recording);
	else
		sampler_stop(session->sampler);
}

int offcpu_session_finish(struct offcpu_session *session, struct err *err, struct offcpu_profile *out)
{
	return session->recording ? recording_finish(session->recording, err, out)
				  : sampler_finish(session->sampler, err, out);
}
