/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_OFFCPU_EVENTS_H
#define STAKEOUT_CMD_OFFCPU_EVENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/pacer.h"
#include "offcpu/record/recording.h"
#include "report/offcpu.h"

/* Writes each wait as it is recorded, in a thread of its own: its reader may stall, and the recording ends in time all the same. */
struct event_writer {
	FILE *out; /* NULL: there are no events to write */
	struct recording *recording;
	struct offcpu_event_stacks stacks; /* that were written */
	struct pacer pacer;
	pthread_t thread;
	bool running;
	atomic_int error; /* an errno; nothing more is written then */
};

/* event_writer_stop() reports what could not be written: there may be another output to record for. */
int event_writer_start(struct event_writer *writer, FILE *out, struct recording *recording, struct err *err);

/* Whether all could be written so far. */
bool event_writer_works(const struct event_writer *writer);

/* Writes the last of them, once the recording was stopped. Later calls only tell again what could not be written. */
int event_writer_stop(struct event_writer *writer, struct err *err);

/* Ends the output with what the profile says of the whole. */
int event_writer_end(struct event_writer *writer, const struct offcpu_profile *profile, struct err *err);

void event_writer_deinit(struct event_writer *writer);

#endif
