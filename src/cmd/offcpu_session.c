/* SPDX-License-Identifier: MIT */
#include "cmd/offcpu_session.h"

#include <errno.h>

#include "offcpu/sample/sampler.h"

static struct watch_options watch_options(const struct offcpu_options *o, const struct tid_list *pids,
					  const struct child *child)
{
	return (struct watch_options){
		.pids = child->pid ? &child->pid : pids->data,
		.npids = child->pid ? 1 : pids->len,
		.all_processes = o->all,
		.children = o->children,
		.by_thread = o->threads,
		.kernel_stacks = o->kernel,
		.user_stacks = o->user,
		.runtimes = o->user && !o->view.no_runtimes,
		.keep_native = o->view.raw,
		.wakers = o->wakers,
		.filter = o->filter,
		.names = {.demangle = !o->view.no_demangle, .symbols = o->view.naming.symbols},
	};
}

static int start_recording(struct offcpu_session *session, const struct watch_options *watch,
			   const struct offcpu_options *o, const struct child *child, struct err *err)
{
	static const enum offcpu_rung rungs[] = {
		[OFFCPU_SOURCE_AUTO] = OFFCPU_RUNG_AUTO,
		[OFFCPU_SOURCE_SCHED_EXIT] = OFFCPU_RUNG_SCHED_EXIT,
		[OFFCPU_SOURCE_KPROBE] = OFFCPU_RUNG_KPROBE,
		[OFFCPU_SOURCE_SWITCH] = OFFCPU_RUNG_SWITCH,
	};
	const struct recording_options options = {
		.watch = *watch,
		.rung = rungs[o->source],
		.read_maps = o->read_maps,
		.only_new = child->pid != 0, /* the command waits for us: that is none of its own waits */
		.events = o->events,
	};
	int rc = recording_start(&options, err, &session->recording);

	if (rc == 0)
		session->watch = recording_watch(session->recording);
	return rc;
}

void offcpu_session_deinit(struct offcpu_session *session)
{
	watch_destroy(session->watch);
}

int offcpu_session_start(struct offcpu_session *session, const struct offcpu_options *o, const struct tid_list *pids,
			 const struct child *child, struct err *err)
{
	struct sampler_options sampling = {.watch = watch_options(o, pids, child)};
	struct err why = {0};
	int rc;

	if (o->source != OFFCPU_SOURCE_PROC) {
		rc = start_recording(session, &sampling.watch, o, child, &why);
		if (rc == 0)
			return 0;
		if (rc == -ENOMEM || o->source != OFFCPU_SOURCE_AUTO)
			return err_set(err, -rc, "%s", why.msg);
		if (o->events)
			return err_set(err, -rc, "%s; --events needs BPF", why.msg);
		sampling.why = why.msg;
	}
	rc = sampler_start(&sampling, err, &session->watch);
	if (rc == -EINVAL && why.msg[0])
		return err_set(err, -rc, "%s", why.msg); /* that is what kept from the better way */
	return rc;
}
