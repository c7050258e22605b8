/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_OFFCPU_SESSION_H
#define STAKEOUT_CMD_OFFCPU_SESSION_H

#include <stdbool.h>

#include "base/err.h"
#include "cmd/child.h"
#include "cmd/offcpu_options.h"
#include "model/offcpu.h"
#include "offcpu/record/recording.h"
#include "offcpu/sample/sampler.h"

/* One of the two is set: waits as BPF tells them, or as they are seen in /proc. */
struct offcpu_session {
	struct recording *recording;
	struct sampler *sampler;
};

/*
 * Of the command that waits to be let go, if there is one, or of these processes, or of all. Where there is no BPF waits are
 * estimated, unless what is wanted cannot be had that way.
 */
int offcpu_session_start(struct offcpu_session *session, const struct offcpu_options *options,
			 const struct offcpu_pids *pids, const struct child *child, struct err *err);
void offcpu_session_deinit(struct offcpu_session *session);

struct recording_progress offcpu_session_progress(const struct offcpu_session *session);
bool offcpu_session_is_over(const struct offcpu_session *session); /* none of its processes is left */

/* Ends it; and makes of it what is to be reported. */
void offcpu_session_stop(struct offcpu_session *session);
int offcpu_session_finish(struct offcpu_session *session, struct err *err, struct offcpu_profile *out);

#endif
