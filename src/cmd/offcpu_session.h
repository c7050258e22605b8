/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_OFFCPU_SESSION_H
#define STAKEOUT_CMD_OFFCPU_SESSION_H

#include "base/err.h"
#include "cmd/child.h"
#include "cmd/offcpu_options.h"
#include "offcpu/record/recording.h"
#include "offcpu/watch.h"

/* Waits as BPF tells them, or as they are seen in /proc. */
struct offcpu_session {
	struct watch *watch;
	struct recording *recording; /* the watch, where BPF tells: only there are events */
};

/*
 * Of the command that waits to be let go, if there is one, or of these processes, or of all. Where there is no BPF waits are
 * estimated, unless what is wanted cannot be had that way.
 */
int offcpu_session_start(struct offcpu_session *session, const struct offcpu_options *options,
			 const struct tid_list *pids, const struct child *child, struct err *err);
void offcpu_session_deinit(struct offcpu_session *session);

#endif
