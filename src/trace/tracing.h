/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TRACE_TRACING_H
#define STAKEOUT_TRACE_TRACING_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "capture/capture.h"
#include "model/snapshot.h"
#include "model/trace.h"
#include "proc/process.h"
#include "symbol/native_names.h"
#include "target/target.h"

/*
 * The pipeline: process → snapshot → walked → named. First all that needs the process: when tracing_capture() is done the
 * snapshot is frozen, and the process may go.
 */
struct tracing;

struct tracing_options {
	struct capture_options capture; /* for a live process */
	bool ptrace;                    /* walk while the process is held, by reading word by word */
	bool ignore_deleted;            /* of deleted files whatever has their paths now */
	uint32_t depth;                 /* most frames; 0: the default */
	bool no_runtimes;               /* only what the processor runs */
	bool locals;                    /* the variables of frames of runtimes, too */
};

struct tracing_names {
	struct native_names_options native;
	bool kernel; /* kernel stacks, too */
	bool raw;    /* all native frames, also those that frames of a runtime stand for */
};

/*
 * Captures a live process and walks its stacks; -ESRCH when another one has got its number. `started_ns` (CLOCK_MONOTONIC)
 * is when the user began to wait.
 */
int tracing_capture(struct process_id id, const struct tracing_options *options, uint64_t started_ns, struct err *err,
		    struct tracing **out);

/* The same for several processes, at one instant if that can be. */
struct tracing_job {
	struct process_id id;
	int rc; /* out, with err; and tracing if it is 0 */
	struct err err;
	struct tracing *tracing;
};

void tracing_capture_all(struct tracing_job *jobs, size_t n, const struct tracing_options *options, uint64_t started_ns);

/* Walks the stacks of a saved snapshot, which it takes over, also on failure. */
int tracing_replay(struct snapshot *snap, const struct tracing_options *options, uint64_t started_ns, struct err *err,
		   struct tracing **out);

void tracing_destroy(struct tracing *tracing); /* NULL is legal */

const struct snapshot *tracing_snapshot(const struct tracing *tracing);

/* The stacks as they were walked, without names. */
const struct trace *tracing_walked(const struct tracing *tracing);

/* The snapshot has been saved: says where the time has gone. */
void tracing_saved(struct tracing *tracing);

/*
 * Others come first, until it is named: that time is not its own. Afterwards, what naming has to know of the live process
 * is looked up, and another process without rights can do it (privilege/broker.h).
 */
void tracing_rest(struct tracing *tracing);
void tracing_go_on(struct tracing *tracing);

/* What was learnt goes to the cache. For a process that ends without tracing_destroy(): that takes as long as its end. */
void tracing_keep_names(struct tracing *tracing);

const struct target *tracing_target(const struct tracing *tracing);

/* The CPUs that threads which ran when they were captured have now. Names are looked up on others, if there are any. */
void tracing_find_busy(const struct tracing *tracing, cpu_set_t *out);

/* Names the stacks. `names` must outlive the tracing; the trace lives as long as that. */
int tracing_name(struct tracing *tracing, const struct tracing_names *names, struct err *err, struct trace **out);

DEFINE_CLEANUP(tracing, struct tracing *, tracing_destroy)

#endif
