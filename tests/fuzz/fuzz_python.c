/* SPDX-License-Identifier: MIT */
/*
 * A saved snapshot of a Python process, whose memory says anything: its frames are found and named, and so are
 * its tasks and what threads wait for. Native frames are made
 * up, one for each 256 bytes of a stack, so that activations of the interpreter have a place.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/snapfile.h"
#include "runtime/python/layout.h"
#include "runtime/runtime.h"
#include "target/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEP = 256, MAX_RAW = 512 };

static uint64_t eval_start(const struct snapshot *snap)
{
	const struct snap_runtime *python = snapshot_find_runtime(snap, "python");

	return python && python->nfacts > PY_EVAL_START ? python->facts[PY_EVAL_START] : 0;
}

static void walk(const struct snapshot *snap, const struct snap_thread *thread, struct raw_stack *raw)
{
	uint64_t pc = eval_start(snap);

	for (uint64_t at = 0; at < thread->stack.len && raw->len < MAX_RAW; at += STEP)
		if (!vec_push(raw, (struct raw_frame){.pc = pc, .sp = thread->stack.start + at}))
			abort();
	raw->end = STACK_COPY_LIMIT;
}

static void show(const struct runtimes *runtimes, const struct snapshot *snap, const struct snap_thread *thread)
{
	struct raw_stack raw = {0};
	struct stack stack = {0};
	struct thread_runtime known;

	walk(snap, thread, &raw);
	if (!runtimes_frames(runtimes, snap, thread, &raw))
		abort();
	runtimes_thread(runtimes, snap, thread, &known);
	for (size_t i = 0; i < raw.len; i++)
		if (!vec_push(&stack, (struct frame){.raw = (uint32_t)i}))
			abort();
	if (!runtimes_merge((void *)runtimes, &raw, &stack))
		abort();
	for (size_t i = 0; i < raw.runtime.len; i++)
		if (raw.runtime.data[i].raw > raw.len)
			abort();
	raw_stack_deinit(&raw);
	vec_deinit(&stack);
}

static void show_wait(const struct runtimes *runtimes, const struct snapshot *snap, const struct snap_thread *thread)
{
	struct runtime_wait wait;

	runtimes_waits(runtimes, snap, thread, &wait);
	if (wait.kind >= WAIT_KIND_COUNT || wait.holder >= HOLDER_COUNT)
		abort();
}

static void show_tasks(const struct runtimes *runtimes)
{
	struct trace_tasks tasks = {0};

	if (!runtimes_tasks(runtimes, &tasks))
		abort();
	for (size_t i = 0; i < tasks.len; i++)
		if (!tasks.data[i].stack || tasks.data[i].state >= TASK_STATE_COUNT)
			abort();
	vec_deinit(&tasks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *in = size ? fmemopen((void *)data, size, "r") : NULL;
	struct snapshot *snap = NULL;
	struct runtimes runtimes = {0};
	struct target *target;
	struct err err;

	if (!in)
		return 0;
	if (snapfile_read(in, &err, &snap) == 0) {
		target = target_open_saved(snap);
		if (!target || !runtimes_init(&runtimes, target))
			abort();
		runtimes_want_locals(&runtimes);
		for (size_t i = 0; i < snap->threads.len; i++)
			show(&runtimes, snap, &snap->threads.data[i]);
		for (size_t i = 0; i < snap->threads.len; i++)
			show_wait(&runtimes, snap, &snap->threads.data[i]);
		show_tasks(&runtimes);
		runtimes_deinit(&runtimes);
		target_close(target);
	}
	snapshot_destroy(snap);
	fclose(in);
	return 0;
}
