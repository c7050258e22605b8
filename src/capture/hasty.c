/* SPDX-License-Identifier: MIT */
/* Who is read in a window: threads that run, or may do so before a round is over. */
#include "base/debug.h"
#include "capture/quiet.h"
#include "kernel/window_look.h"
#include "proc/task.h"

enum {
	MAX_WINDOWS = 4,     /* for one snapshot */
	MANY_THREADS = 2000, /* a round with more takes too long for a hurry */
};

/* Whoever runs, waits for a CPU, or has slept for less than a round takes. */
static bool is_hasty(const struct take *take, const struct observation *o, const struct snap_thread *t)
{
	return o->place.task && o->place.regs && !o->kernel_worker && !state_is_dead(o->state) &&
	       (o->running || o->state == 'R' || t->retakes || (o->off_cpu_ns >= 0 && (uint64_t)o->off_cpu_ns < take->recent_ns));
}

static bool may_have_windows(const struct take *take)
{
	const struct capture *c = take->capture;

	return !c->no_windows && c->options.stop == STOP_AUTO && !c->target->memory.use_proc_mem && take->windows_tried < MAX_WINDOWS;
}

void take_give_back(struct take *take)
{
	for (size_t i = 0; i < take->work.len; i++)
		if (take->work.data[i] == WORK_HURRY)
			take->work.data[i] = WORK_TAKE;
}

void take_set_aside(struct take *take)
{
	const struct capture *c = take->capture;

	for (size_t i = 0; may_have_windows(take) && i < c->seen.len; i++) {
		const struct observation *o = &c->seen.data[i];
		uint64_t *slot = u64map_find(&take->index, (uint64_t)o->tid);

		/* Also who was copied asleep in an earlier round, and may get up in this one. */
		if (slot && (take->work.data[*slot] == WORK_TAKE || take->work.data[*slot] == WORK_ASLEEP) &&
		    is_hasty(take, o, &take->snap->threads.data[*slot]))
			take->work.data[*slot] = WORK_HURRY;
	}
}

static bool wants_window(const struct take *take)
{
	const struct capture *c = take->capture;

	if (take->rc < 0 || !may_have_windows(take))
		return false;
	for (size_t i = 0; i < c->seen.len; i++) {
		const uint64_t *slot = u64map_find(&take->index, (uint64_t)c->seen.data[i].tid);

		if (slot && is_hasty(take, &c->seen.data[i], &take->snap->threads.data[*slot]))
			return true;
	}
	return take->again > 0; /* what was seen last were counters only */
}

static void load_look(struct take *const *takes, size_t n)
{
	struct err why = {0};
	int rc = window_look_create(&why, takes[0]->look);

	debug_say(rc, "looking at running threads by BPF%s%s", why.msg[0] ? ": " : "", why.msg);
	for (size_t i = 0; rc < 0 && i < n; i++) {
		if (wants_window(takes[i]))
			notes_add(&takes[i]->snap->notes, QUIET_HELD_BECAUSE "%s", why.msg);
		takes[i]->capture->no_windows = true;
	}
}

/*
 * On a loaded machine we would wait for a CPU in the midst of a round: for longer than threads sleep, and what was rehearsed would
 * not be in the caches any more.
 */
static void hurry(struct take *const *takes, size_t n, struct foreground *foreground)
{
	size_t threads = 0;

	for (size_t i = 0; i < n; i++)
		threads += takes[i]->capture->seen.len;
	if (threads < MANY_THREADS)
		foreground_begin(foreground);
}

bool take_prepare_window(struct take *const *takes, size_t n, struct foreground *foreground)
{
	bool wanted = false;

	for (size_t i = 0; i < n; i++)
		wanted |= wants_window(takes[i]);
	if (wanted && !*takes[0]->look)
		load_look(takes, n);
	if (!wanted || !*takes[0]->look)
		return false;
	hurry(takes, n, foreground);
	return true;
}
