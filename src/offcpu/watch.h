/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_WATCH_H
#define STAKEOUT_OFFCPU_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"
#include "model/offcpu.h"
#include "symbol/native_names.h"
#include "target/roots.h"
#include "target/target.h"

/*
 * Waits being watched, from the start to the profile: as BPF reports them (record/recording.h), or as /proc shows them
 * (sample/sampler.h). Both have struct watch as their first member. To add a way: a file with its ops and a start
 * function, and a step in offcpu/session.c.
 */
struct watch {
	const struct watch_ops *ops;
};

/* Options of both. */
struct watch_options {
	const pid_t *pids; /* the processes to watch, unless all are */
	size_t npids;
	bool all_processes;
	bool children;
	bool by_thread;
	bool kernel_stacks;
	bool user_stacks;
	bool runtimes;     /* frames of language runtimes, */
	bool keep_native;  /* and the native frames that they stand for */
	bool wakers;
	struct offcpu_filter filter;
	struct native_names_options names; /* `find` is theirs */
};

struct watch_progress {
	uint64_t waits;
	uint64_t lost;
};

/* Processes whose files naming may ask for, and roots of others. */
struct watch_targets {
	struct roots *roots; /* or NULL */
	VEC_FIELDS(const struct target *);
};

struct watch_ops {
	void (*destroy)(struct watch *watch);
	/* The last of the processes has ended; never when all are watched. */
	bool (*is_over)(const struct watch *watch);
	/* As it is now. */
	struct watch_progress (*progress)(struct watch *watch);
	/* No more waits are recorded from now on; what was recorded still has to be finished. */
	void (*stop)(struct watch *watch);
	/*
	 * After that: looks up what names need of the kernel and of processes, so that a process without rights can do
	 * finish() (privilege/broker.h), and lists those processes. False when memory is exhausted.
	 */
	bool (*prepare)(struct watch *watch, struct watch_targets *out);
	/* What was learnt of files goes to the cache: for that process, which ends without destroy(). */
	void (*keep_names)(struct watch *watch);
	/* finish() is to read no file: frames have modules and offsets only. */
	void (*forgo_names)(struct watch *watch);
	/* Ends it, names everything and leaves the result in *out, whose strings and stacks belong to the watch. */
	int (*finish)(struct watch *watch, struct err *err, struct offcpu_profile *out);
};

static inline void watch_destroy(struct watch *watch) /* NULL is legal */
{
	if (watch)
		watch->ops->destroy(watch);
}

#endif
