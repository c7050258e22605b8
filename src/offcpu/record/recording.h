/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_RECORD_RECORDING_H
#define STAKEOUT_OFFCPU_RECORD_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "kernel/offcpu_probe.h"
#include "model/offcpu.h"
#include "symbol/native_names.h"

/*
 * Records the waits of processes. One thread reads what BPF sends, so that nothing is lost while another reads the maps
 * and the unwind tables of processes that turn up; naming comes at the end.
 */
struct recording;

struct recording_options {
	struct offcpu_probe_options probe; /* `events`: recording_take_events() will be called now and then */
	const pid_t *pids; /* the processes to watch, unless all are */
	size_t npids;
	bool by_thread;
	struct native_names_options names; /* `find` is ours */
};

struct recording_progress {
	uint64_t waits;
	uint64_t lost;
};

/* Starts at once. -EPERM and others with a sentence that says what is missing. */
int recording_start(const struct recording_options *options, struct err *err, struct recording **out);
void recording_destroy(struct recording *recording);

const char *recording_method(const struct recording *recording);
struct offcpu_filter recording_filter(const struct recording *recording);

/* The last of the processes has ended; never when all are recorded. */
bool recording_is_over(const struct recording *recording);

/* As it is now. */
struct recording_progress recording_progress(struct recording *recording);

/*
 * Calls `take` for each wait since the last call, in the order of their ends; NULL: they are dropped. False when memory is
 * exhausted.
 */
typedef void (*offcpu_event_fn)(void *arg, const struct offcpu_event *event);
bool recording_take_events(struct recording *recording, offcpu_event_fn take, void *arg);

/* No more waits are seen from now on; those that were are still to be taken or finished. */
void recording_stop(struct recording *recording);

/* Ends it, names everything and leaves the result in *out, whose strings and stacks belong to the recording. */
int recording_finish(struct recording *recording, struct err *err, struct offcpu_profile *out);

#endif
