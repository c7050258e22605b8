/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_SESSION_H
#define STAKEOUT_OFFCPU_SESSION_H

#include <stdbool.h>

#include "base/err.h"
#include "offcpu/record/recording.h"
#include "offcpu/watch.h"

/* Waits as BPF tells them, or as they are seen in /proc. */
struct offcpu_session {
	struct watch *watch;
	struct recording *recording; /* the watch, where BPF tells: only there are events */
};

/* Where stacks are taken, for tests; each forces one rung, the last does without BPF. In the order of the words of --source. */
enum offcpu_source {
	OFFCPU_SOURCE_AUTO,
	OFFCPU_SOURCE_SCHED_EXIT,
	OFFCPU_SOURCE_KPROBE,
	OFFCPU_SOURCE_SWITCH,
	OFFCPU_SOURCE_PROC,
};

struct offcpu_session_options {
	struct watch_options watch;
	enum offcpu_source source;
	bool read_maps; /* as in struct recording_options */
	bool only_new;
	bool events;
};

/* Where there is no BPF waits are estimated, unless what is wanted cannot be had that way. */
int offcpu_session_start(struct offcpu_session *session, const struct offcpu_session_options *options, struct err *err);
void offcpu_session_deinit(struct offcpu_session *session);

#endif
