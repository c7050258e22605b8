/* SPDX-License-Identifier: MIT */
/* What all threads of a process wait for, gathered between the two passes over them: so no third one has to prove it. */
#include <errno.h>

#include "base/cleanup.h"
#include "base/debug.h"
#include "capture/besides.h"
#include "capture/file_ahead.h"
#include "capture/take.h"
#include "proc/task.h"

static const int64_t long_ns = 1000 * 1000 * 1000;

static bool all_sleep_long(const struct snapshot *snap)
{
	bool all = true;

	for (size_t i = 0; all && i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];

		all = state_is_dead(t->state) || (t->state != 'R' && t->off_cpu_ns >= long_ns);
	}
	return all;
}

void take_begin_between(struct take *take)
{
	take->between = take->may_gather && !take->capture->restless && take->rc == 0 && all_sleep_long(take->snap);
	if (take->between)
		take->capture->ahead = file_ahead_begin(take->capture, take->snap);
}

static bool all_stand_still(const struct take *take)
{
	bool all = true;

	for (size_t i = 0; all && i < take->work.len; i++)
		all = take->work.data[i] == WORK_ASLEEP || take->work.data[i] == WORK_SETTLED;
	return all;
}

void take_gather_between(struct take *take)
{
	struct besides besides = {.capture = take->capture, .snap = take->snap};

	take->between = take->between && take->rc == 0 && all_stand_still(take);
	if (!take->between) {
		file_ahead_destroy(steal_ptr(take->capture->ahead));
		return;
	}
	take_kernel_text(take->snap);
	take->rc = besides_gather(&besides, 1, take->err, &take->any_gathered);
}

int take_end_between(struct take *take)
{
	int rc = take->rc;
	const bool moved = rc == 0 && (take->again || !all_stand_still(take));

	if (moved && !take->any_gathered) { /* nothing is lost: whoever moved is taken again, and what there is to gather is gathered then */
		take->between = false;
		file_ahead_destroy(steal_ptr(take->capture->ahead));
	}
	if (!take->between)
		return rc;
	if (moved) {
		take->capture->restless = true;
		rc = -EAGAIN;
	}
	if (rc == 0 && take->any_gathered)
		besides_judge(take->capture, take->snap);
	debug_say(rc, "what threads wait for that have slept for long was gathered between the two passes over them");
	return rc;
}
