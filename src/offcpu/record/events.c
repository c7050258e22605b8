/* SPDX-License-Identifier: MIT */
#include "offcpu/record/events.h"

#include <string.h>

enum { MOST_WAITING = 1 << 18 };

struct record_event {
	struct wait_row row; /* as it was then */
	char name[OFFCPU_COMM + 1];
	uint64_t start_ns;
	uint64_t duration_ns;
	uint64_t runnable_ns;
	bool unfinished;
};

void record_events_init(struct record_events *events)
{
	pthread_mutex_init(&events->lock, NULL);
}

void record_events_deinit(struct record_events *events)
{
	vec_deinit(&events->waiting);
	pthread_mutex_destroy(&events->lock);
}

void record_events_add(struct record_events *events, const struct wait_row *row, const struct offcpu_wait *wait)
{
	struct record_event event = {
		.row = *row,
		.start_ns = wait->start_ns,
		.duration_ns = wait->duration_ns,
		.runnable_ns = wait->runnable_ns,
		.unfinished = wait->flags & OFFCPU_UNFINISHED,
	};

	memcpy(event.name, row->name, sizeof(event.name));
	pthread_mutex_lock(&events->lock);
	if (events->waiting.len >= MOST_WAITING || !vec_push(&events->waiting, event))
		atomic_fetch_add(&events->lost, 1);
	pthread_mutex_unlock(&events->lock);
}

static bool give(struct record_event *event, struct offcpu_naming *naming, int64_t epoch_ns, offcpu_event_fn take, void *arg)
{
	struct offcpu_row row;
	const struct offcpu_event out = {
		.time_ns = epoch_ns + (int64_t)event->start_ns,
		.duration_ns = event->duration_ns,
		.runnable_ns = event->runnable_ns,
		.unfinished = event->unfinished,
		.what = &row,
	};

	event->row.name = event->name;
	if (!offcpu_naming_row(naming, &event->row, &row))
		return false;
	take(arg, &out);
	return true;
}

bool record_events_take(struct record_events *events, struct offcpu_naming *naming, int64_t epoch_ns, offcpu_event_fn take, void *arg)
{
	struct record_event_list taken;
	bool ok = true;

	pthread_mutex_lock(&events->lock);
	taken = events->waiting;
	events->waiting = (struct record_event_list){0};
	pthread_mutex_unlock(&events->lock);
	for (size_t i = 0; take && ok && i < taken.len; i++)
		ok = give(&taken.data[i], naming, epoch_ns, take, arg);
	vec_deinit(&taken);
	return ok;
}
