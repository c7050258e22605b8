/* SPDX-License-Identifier: MIT */
/* What all threads of a process wait for, gathered between the two passes over them: so no third one has to prove it. */
#include <errno.h>

#include "base/debug.h"
#include "capture/besides.h"
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

void take_gather_between(struct take *take)
{
	struct capture *c = take->capture;
	struct besides besides = {.capture = c, .snap = take->snap, .between = true};

	if (!take->may_gather || c->restless || take->rc < 0 || !all_sleep_long(take->snap))
		return;
	take_kernel_text(take->snap);
	take->rc = besides_gather(&besides, 1, take->err, &take->any_gathered);
	take->gathered = true;
	debug_say(take->rc, "all threads have slept for long: what they wait for is gathered between the passes");
}

int take_end_between(struct take *take)
{
	if (!take->gathered || take->rc < 0)
		return 0;
	for (size_t i = 0; i < take->work.len; i++)
		take->capture->restless |= take->work.data[i] != WORK_ASLEEP && take->work.data[i] != WORK_SETTLED;
	if (take->again || take->capture->restless) {
		take->capture->restless = true;
		return -EAGAIN;
	}
	if (take->any_gathered)
		besides_judge(take->capture, take->snap);
	return 0;
}
