/* SPDX-License-Identifier: MIT */
#include "offcpu/record/unfinished.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/vec.h"
#include "kernel/task_iter.h"
#include "offcpu/sleeping.h"

/* A thread that was not on a CPU. */
struct sleeper {
	const struct task_record *record;
	const uint64_t *kernel;
	uint32_t set; /* of mappings */
	struct sleeping_stack stack;
	bool walked;
};

struct unfinished {
	struct unfinished_options options;
	struct task_iter *iter; /* has the records */
	struct sleeping *sleeping;
	VEC(struct sleeper) sleepers;
	struct u64map by_tid; /* to index + 1 */
	uint64_t ids;
};

DEFINE_CLEANUP(unfinished, struct unfinished *, unfinished_destroy)

void unfinished_destroy(struct unfinished *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->sleepers.len; i++)
		sleeping_stack_deinit(&u->sleepers.data[i].stack);
	vec_deinit(&u->sleepers);
	u64map_deinit(&u->by_tid);
	sleeping_destroy(u->sleeping);
	task_iter_destroy(u->iter);
	free(u);
}

/* Keeps the threads of a process together, so that its files are opened once. */
static int compare(const void *a, const void *b)
{
	const struct task_record *x = ((const struct sleeper *)a)->record, *y = ((const struct sleeper *)b)->record;

	return x->tgid != y->tgid ? (x->tgid > y->tgid) - (x->tgid < y->tgid) : (x->tid > y->tid) - (x->tid < y->tid);
}

static int list(struct unfinished *u, struct offcpu_probe *probe, struct err *err)
{
	const struct task_iter_request request = {.kernel_stacks = u->options.kernel_stacks};
	const struct task_record *record;
	const __u64 *kernel;
	size_t pos = 0;
	int rc = task_iter_pass(u->iter, &request, err);

	if (rc < 0)
		return rc;
	while ((record = task_iter_next(u->iter, &pos, &kernel))) {
		const struct sleeper sleeper = {.record = record, .kernel = (const uint64_t *)kernel};

		if (record->flags & TASK_ON_CPU || record->exit_state ||
		    !offcpu_probe_is_watched(probe, (pid_t)record->tgid))
			continue;
		if (!vec_push(&u->sleepers, sleeper))
			return err_set(err, ENOMEM, "out of memory");
	}
	if (u->sleepers.len)
		qsort(u->sleepers.data, u->sleepers.len, sizeof(*u->sleepers.data), compare);
	for (size_t i = 0; i < u->sleepers.len; i++) {
		bool created;
		uint64_t *slot = u64map_put(&u->by_tid, u->sleepers.data[i].record->tid, &created);

		if (!slot)
			return err_set(err, ENOMEM, "out of memory");
		*slot = i + 1;
	}
	return 0;
}

static void walk(struct unfinished *u, struct sleeping_process *known, const struct process *process,
		 struct sleeper *sleeper)
{
	const struct task_record *record = sleeper->record;
	struct snap_thread thread = {.tid = (pid_t)record->tid,
				     .state = task_record_state(record),
				     .status = THREAD_CAPTURED,
				     .capture = CAPTURE_ASLEEP};

	task_record_registers(record, &thread.regs);
	task_record_syscall(record, &thread.syscall);
	sleeping_walk(u->sleeping, known, process, &thread, &sleeper->stack);
	sleeper->walked = true;
}

/* An exiting thread has given up its memory. */
static bool has_user_stack(const struct task_record *record)
{
	return record->mm && record->flags & TASK_HAS_REGS && !task_record_is_kernel_worker(record);
}

/* Walks all sleepers of a process, from `first` on; returns the index behind the last. */
static size_t walk_process(struct unfinished *u, struct tables *tables, size_t first)
{
	pid_t tgid = (pid_t)u->sleepers.data[first].record->tgid;
	struct sleeping_process known = {0};
	struct process process;
	struct err err = {0};
	int rc = process_open(tgid, &err, &process);
	size_t i;

	for (i = first; i < u->sleepers.len && (pid_t)u->sleepers.data[i].record->tgid == tgid; i++) {
		struct sleeper *sleeper = &u->sleepers.data[i];

		if (!has_user_stack(sleeper->record))
			continue;
		if (rc == 0)
			walk(u, &known, &process, sleeper);
		else
			snprintf(sleeper->stack.error, sizeof(sleeper->stack.error), "%s", err.msg);
	}
	if (rc < 0)
		return i;
	sleeping_forget(u->sleeping, &known);
	process_close(&process);
	for (size_t j = first; j < i; j++)
		u->sleepers.data[j].set = tables_set_of(tables, tgid);
	return i;
}

int unfinished_read(struct offcpu_probe *probe, struct tables *tables, const struct unfinished_options *options,
		    struct err *err, struct unfinished **out)
{
	_cleanup_(cleanup_unfinished) struct unfinished *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return err_set(err, ENOMEM, "out of memory");
	u->options = *options;
	u->sleeping = sleeping_create(false, options->runtimes);
	if (!u->sleeping)
		return err_set(err, ENOMEM, "out of memory");
	rc = task_iter_create(0, err, &u->iter);
	if (rc == 0)
		rc = list(u, probe, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; options->user_stacks && i < u->sleepers.len;)
		i = walk_process(u, tables, i);
	*out = steal_ptr(u);
	return 0;
}

static const struct sleeper *find(const struct unfinished *u, uint32_t tid)
{
	const uint64_t *slot = u64map_find(&u->by_tid, tid);

	return slot ? &u->sleepers.data[*slot - 1] : NULL;
}

/*
 * Why the stack that was read may not be that of the wait; NULL: it is. A kernel that has the count but does not keep
 * it says 0.
 */
static const char *find_doubt(const struct sleeper *sleeper, const struct offcpu_open *open)
{
	if (!sleeper || sleeper->record->runs != open->runs)
		return "it had run before its stacks could be read";
	if (!(sleeper->record->flags & TASK_HAS_RUNS) || !sleeper->record->runs)
		return "the kernel does not count how often a thread gets a CPU: it may have run before its stacks were read";
	return NULL;
}

static struct stack_sample make_sample(const struct sleeper *sleeper, const struct offcpu_open *open)
{
	struct stack_sample sample = {.user_end = OFFCPU_END_NO_USER};

	sample.user_error = sample.kernel_error_words = find_doubt(sleeper, open);
	if (sample.user_error)
		return sample;
	sample.set = sleeper->set;
	sample.kernel = sleeper->kernel;
	sample.nkernel = sleeper->record->nkernel;
	sample.kernel_error = sleeper->record->kernel_error;
	sample.user = sleeper->stack.frames.data;
	sample.nuser = (uint32_t)sleeper->stack.frames.len;
	sample.runtime = sleeper->stack.frames.runtime.data;
	sample.nruntime = (uint32_t)sleeper->stack.frames.runtime.len;
	sample.runtime_process = sleeper->stack.runtime_process;
	if (sleeper->walked)
		sample.user_end = OFFCPU_END_COMPLETE;
	if (sleeper->stack.error[0])
		sample.user_error = sleeper->stack.error;
	return sample;
}

/* Uses an id that no stack from BPF has. */
static void add_stack(struct stack_sample *sample, uint64_t number, struct waits *waits, struct offcpu_wait *wait)
{
	sample->id = (struct offcpu_stack_id){.low = 2 * number, .high = 1};
	waits_put_stack(waits, sample);
	wait->key.stack = sample->id;
}

void unfinished_add_stack(struct unfinished *u, const struct offcpu_open *open, struct waits *waits,
			  struct offcpu_wait *wait)
{
	struct stack_sample sample = make_sample(find(u, open->wait.key.tid), open);

	add_stack(&sample, ++u->ids, waits, wait);
}

void unfinished_add_reason(const char *why, bool user_stacks, struct waits *waits, struct offcpu_wait *wait)
{
	struct stack_sample none = {.user_end = OFFCPU_END_NO_USER,
				   .user_error = user_stacks ? why : NULL,
				   .kernel_error_words = why};

	add_stack(&none, 1, waits, wait);
}
