/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_RECORD_EVENTS_H
#define STAKEOUT_OFFCPU_RECORD_EVENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "bpf/offcpu_record.h"
#include "model/offcpu.h"
#include "offcpu/naming.h"
#include "offcpu/waits.h"

struct record_event_list {
	VEC_FIELDS(struct record_event);
};

/* Waits one by one, from the thread that reads them to the one that shows them. */
struct record_events {
	pthread_mutex_t lock; /* guards `waiting` */
	struct record_event_list waiting;
	atomic_ullong lost; /* there were too many that nobody had taken yet */
};

void record_events_init(struct record_events *events);
void record_events_deinit(struct record_events *events);
void record_events_add(struct record_events *events, const struct wait_row *row, const struct offcpu_wait *wait);

/*
 * Calls `take` for each since the last call, in the order of their ends; NULL: they are dropped. `epoch_ns` is CLOCK_MONOTONIC's zero in
 * CLOCK_REALTIME. False when memory is exhausted.
 */
typedef void (*offcpu_event_fn)(void *arg, const struct offcpu_event *event);
bool record_events_take(struct record_events *events, struct offcpu_naming *naming, int64_t epoch_ns, offcpu_event_fn take, void *arg);

#endif
