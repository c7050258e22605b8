/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_RECORD_RECORDING_H
#define STAKEOUT_OFFCPU_RECORD_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "kernel/offcpu_probe.h"
#include "model/offcpu.h"
#include "offcpu/record/events.h"
#include "offcpu/watch.h"

/*
 * Records the waits of processes. One thread reads what BPF sends, so that nothing is lost while another reads the maps
 * and unwind tables of new processes; naming comes at the end.
 */
struct recording;

struct recording_options {
	struct watch_options watch;
	enum offcpu_rung rung;
	bool read_maps; /* as on kernels where BPF cannot look at what processes have mapped */
	bool only_new; /* not waits that began before */
	bool events;   /* recording_take_events() will be called now and then */
};

/* Starts at once. -EPERM and other errors with a sentence that says what is missing. */
int recording_start(const struct recording_options *options, struct err *err, struct recording **out);
struct watch *recording_watch(struct recording *recording); /* the recording itself, which its ops also end */

/* What is known from the start: the profile without waits, duration, losses and notes. Owns nothing. */
struct offcpu_profile recording_head(const struct recording *recording);

/* As record_events_take(). */
bool recording_take_events(struct recording *recording, offcpu_event_fn take, void *arg);

#endif
