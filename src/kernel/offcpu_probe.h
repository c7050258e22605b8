/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_OFFCPU_PROBE_H
#define STAKEOUT_KERNEL_OFFCPU_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "bpf/offcpu_record.h"
#include "bpf/unwind_row.h"
#include "model/offcpu.h"

/* The BPF programs that see waits: loading, the tables they walk user stacks with, the records they send. */
struct offcpu_probe;

/* Where stacks are taken, from the best to the least. */
enum offcpu_rung {
	OFFCPU_RUNG_AUTO,
	OFFCPU_RUNG_SCHED_EXIT, /* when the thread is back on a CPU, at the scheduler's own tracepoint (Linux 6.18) */
	OFFCPU_RUNG_KPROBE,	/* the same, by a probe on finish_task_switch() */
	OFFCPU_RUNG_SWITCH,	/* at every switch, before it is known how long the wait will be */
};

struct offcpu_probe_options {
	enum offcpu_rung rung;
	struct offcpu_filter filter;
	bool all_processes;
	bool children;
	bool kernel_stacks;
	bool user_stacks;
	bool runtimes; /* frames of language runtimes, with user stacks */
	bool wakers;
	bool only_new; /* not waits that began before */
	bool events; /* a record for each wait; otherwise they are added up where possible */
	uint32_t pretended; /* enum offcpu_pretence; 0: nothing */
	uint32_t ring_bytes;			  /* a power of two */
	uint32_t max_mappings;			  /* of all processes together */
};

/* Loads the best rung that this kernel has. -EPERM and other errors with a sentence that says what is missing. */
int offcpu_probe_create(const struct offcpu_probe_options *options, struct err *err, struct offcpu_probe **out);
void offcpu_probe_destroy(struct offcpu_probe *probe);

/* "sched_exit", "kprobe" or "switch" */
const char *offcpu_probe_method(const struct offcpu_probe *probe);

/* Why this kernel cannot give the stacks that were wanted; NULL: it can. */
const char *offcpu_probe_lacks_user_stacks(const struct offcpu_probe *probe);
const char *offcpu_probe_lacks_kernel_stacks(const struct offcpu_probe *probe);

/*
 * Why no better rung is used. NULL: there is no better one, or this one was asked for, or it is a kprobe because the
 * kernel is too old for the tracepoint, which is fine.
 */
const char *offcpu_probe_passed_over(const struct offcpu_probe *probe);

/* Watches a process from now on, unless all are. */
int offcpu_probe_watch(struct offcpu_probe *probe, pid_t tgid, struct err *err);
bool offcpu_probe_is_watched(const struct offcpu_probe *probe, pid_t tgid); /* or a child of a watched process */
bool offcpu_probe_watches_any(const struct offcpu_probe *probe); /* whether watched processes are left */
bool offcpu_probe_is_hidden(const struct offcpu_probe *probe, pid_t tgid); /* hidden from BPF, at the start */
int offcpu_probe_start(struct offcpu_probe *probe, struct err *err);
int offcpu_probe_note_waiting(struct offcpu_probe *probe, struct err *err); /* waits in processes watched since then */
uint64_t offcpu_probe_begin_ns(const struct offcpu_probe *probe); /* from when waits are counted, CLOCK_MONOTONIC */

/*
 * offcpu_probe_end(): no new waits are counted, and those under way count up to now, which it returns; threads that
 * come back still send their stacks. offcpu_probe_stop(): stops, and lists the threads that still wait, without stacks;
 * the list is valid until the next call. Records in the ring can still be read.
 */
uint64_t offcpu_probe_end(struct offcpu_probe *probe);
int offcpu_probe_stop(struct offcpu_probe *probe, struct err *err, const struct offcpu_open **open, size_t *n);

/*
 * How long each thread that is still there was on a CPU; those that ended have sent it. To be called between
 * offcpu_probe_end() and offcpu_probe_stop(); the list is valid until the next call.
 */
int offcpu_probe_ran(struct offcpu_probe *probe, struct err *err, const struct offcpu_ran **ran, size_t *n);

/* Calls `take` for each sum; lengths: NULL when its first waits are all. To be called after offcpu_probe_stop(). */
typedef void (*offcpu_sums_fn)(void *arg, const struct offcpu_key *key, const struct offcpu_sums *sums,
			       const struct offcpu_lengths_counted *lengths);
int offcpu_probe_sums(struct offcpu_probe *probe, offcpu_sums_fn take, void *arg);

uint64_t offcpu_probe_seen(struct offcpu_probe *probe); /* waits so far */

/* Tables. A descriptor for close(), or -errno. Rows are copied. Only mappings with this serial number lead to it. */
int offcpu_probe_create_table(struct offcpu_probe *probe, const struct unwind_row *rows, size_t n, uint32_t serial);

/*
 * Gives these tables to these objects, in the same order. All in one call: the kernel waits until nobody uses the old
 * ones, which takes some hundredths of a second. -ENOSPC: over the limit.
 */
int offcpu_probe_set_objects(struct offcpu_probe *probe, const uint32_t *objects, const int *tables, size_t n);
int offcpu_probe_set_mapping(struct offcpu_probe *probe, uint32_t index, const struct offcpu_mapping *mapping);

/* Empties a slot, unless it is another set's by now. If BPF is just giving it to another, that may lose the mapping: it is found again. */
void offcpu_probe_forget_mapping(struct offcpu_probe *probe, uint32_t index, uint32_t set);
int offcpu_probe_set_process(struct offcpu_probe *probe, pid_t tgid, const struct offcpu_maps *maps);
uint32_t offcpu_probe_set_of(const struct offcpu_probe *probe, pid_t tgid); /* what BPF walks it with; 0: nothing */
void offcpu_probe_forget_process(struct offcpu_probe *probe, pid_t tgid, uint32_t set); /* unless it has another set */

/* What it needs to tell the frames of the process's language runtimes; NULL: there are none. */
int offcpu_probe_set_runtime(struct offcpu_probe *probe, pid_t tgid, const struct offcpu_runtime *runtime);

/* What is known of a block of code of HotSpot's routines: runtime_layout.h. */
int offcpu_probe_set_stubs(struct offcpu_probe *probe, const struct offcpu_stub_key *key, const struct offcpu_stub_rows *rows);

/* Whether BPF finds out itself what a process has mapped (Linux 6.7), by the files that it is told of. */
bool offcpu_probe_finds_code(const struct offcpu_probe *probe);

/*
 * Which file we have mapped at an address, as BPF knows it, as long as it is mapped; without the page. -ENOENT: none, nor
 * the vDSO. By one thread at a time.
 */
int offcpu_probe_identify(struct offcpu_probe *probe, const void *address, struct offcpu_file *out);
int offcpu_probe_set_file(struct offcpu_probe *probe, const struct offcpu_file *file, const struct offcpu_file_code *code);
void offcpu_probe_forget_file(struct offcpu_probe *probe, const struct offcpu_file *file);

/* BPF may ask for the process again; without news, only after a while. */
void offcpu_probe_answered(struct offcpu_probe *probe, pid_t tgid, bool news);

/*
 * Calls `handle` for each record that is there, and for those that arrive within timeout_ms or until an urgent one. The
 * first word of a record is its enum offcpu_kind.
 */
typedef void (*offcpu_record_fn)(void *arg, const void *record, size_t len);
int offcpu_probe_poll(struct offcpu_probe *probe, int timeout_ms, offcpu_record_fn handle, void *arg);

uint64_t offcpu_probe_loss(const struct offcpu_probe *probe, enum offcpu_lost what);

#endif
