/* SPDX-License-Identifier: MIT */
#include "offcpu/session.h"

#include <errno.h>

#include "offcpu/sample/sampler.h"

static int start_recording(struct offcpu_session *session, const struct offcpu_session_options *o, struct err *err)
{
	static const enum offcpu_rung rungs[] = {
		[OFFCPU_SOURCE_AUTO] = OFFCPU_RUNG_AUTO,
		[OFFCPU_SOURCE_SCHED_EXIT] = OFFCPU_RUNG_SCHED_EXIT,
		[OFFCPU_SOURCE_KPROBE] = OFFCPU_RUNG_KPROBE,
		[OFFCPU_SOURCE_SWITCH] = OFFCPU_RUNG_SWITCH,
	};
	const struct recording_options options = {
		.watch = o->watch,
		.rung = rungs[o->source],
		.read_maps = o->read_maps,
		.only_new = o->only_new,
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

int offcpu_session_start(struct offcpu_session *session, const struct offcpu_session_options *o, struct err *err)
{
	struct sampler_options sampling = {.watch = o->watch};
	struct err why = {0};
	int rc;

	if (o->source != OFFCPU_SOURCE_PROC) {
		rc = start_recording(session, o, &why);
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
