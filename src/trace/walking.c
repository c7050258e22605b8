/* SPDX-License-Identifier: MIT */
#include "trace/walking.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "target/ask.h"
#include "unwind/unwind.h"
#include "wait/parked.h"

enum {
	MORE_BYTES = 16 << 10, /* from where a walk could not read on */
	MAX_ROUNDS = 16,
	CODE_BEFORE = 16, /* of code made at run time: a call before the address, */
	CODE_BEHIND = 32, /* and what comes after it */
};

struct walk_state {
	const struct walking *walking;
	struct trace *trace; /* its threads are beside the snapshot's */
};

struct code_state {
	const struct walking *walking;
	struct trace *trace;
	struct u64map seen; /* where code was asked for */
};

static struct trace_thread *find_thread(const struct walk_state *state, const struct snap_thread *thread)
{
	return &state->trace->threads.data[thread - state->walking->target->snap->threads.data];
}

static void walk_thread(const struct walking *walking, struct trace_thread *t)
{
	const struct unwind_options options = {
		.depth = walking->depth,
		.budget = walking->budget,
		.steppers = walking->runtimes->steppers.data,
		.nsteppers = walking->runtimes->steppers.len,
	};

	raw_stack_deinit(&t->raw);
	unwind_thread(walking->target->snap, walking->target->modules, t->thread, &options, &t->raw);
}

/* The walk itself is the question: where it cannot read on, it wants more. */
static bool ask_walk(void *ctx, const struct snapshot *snap, const struct snap_thread *thread,
		     const struct ask *answers, struct ask *wants)
{
	const struct walk_state *state = ctx;
	struct trace_thread *t = find_thread(state, thread);
	const struct map_entry *map;
	uint64_t last = answers->len ? answers->data[0].address : 0, len;

	if (answers->len && !answers->data[0].got)
		return true; /* it cannot be read: the walk has said so */
	if (!answers->len && state->walking->walked && ptrace_walk_take(state->walking->walked, thread->tid, &t->raw))
		return true;
	walk_thread(state->walking, t);
	map = t->raw.missing ? maps_find(&snap->maps, t->raw.missing) : NULL;
	if (!map || t->raw.missing == last)
		return true;
	len = map->end - t->raw.missing;
	return ask_want(wants, t->raw.missing, len < MORE_BYTES ? len : MORE_BYTES, ASK_BYTES);
}

static void walk_again(void *ctx, const struct snapshot *snap, const struct snap_thread *thread)
{
	const struct walk_state *state = ctx;

	walk_thread(state->walking, find_thread(state, thread));
}

static const struct asker walk_asker = {.max_rounds = MAX_ROUNDS, .ask = ask_walk, .forget = walk_again};

/* The code of a frame, once for all that are in the same place. */
static bool want_code(const struct snapshot *snap, uint64_t pc, struct u64map *seen, struct ask *wants)
{
	const struct map_entry *map = maps_find(&snap->maps, pc);
	uint64_t start, end;
	bool created;

	if (!map)
		return true;
	if (!u64map_put(seen, pc, &created))
		return false;
	start = pc - map->start < CODE_BEFORE ? map->start : pc - CODE_BEFORE;
	end = map->end - pc < CODE_BEHIND ? map->end : pc + CODE_BEHIND;
	return !created || ask_want(wants, start, end - start, ASK_BYTES);
}

static bool is_unread(const struct raw_stack *raw)
{
	for (size_t i = 0; i < raw->len; i++)
		if (raw->data[i].flags & FRAME_UNREAD)
			return true;
	return false;
}

/*
 * Code made at run time is no thread's own: it is read for all of them, wherever they have got to, and they are walked
 * once more.
 */
static bool ask_code(void *ctx, const struct snapshot *snap, const struct snap_thread *thread, const struct ask *answers,
		     struct ask *wants)
{
	struct code_state *state = ctx;
	bool ok = true;

	for (size_t i = 0; ok && i < state->trace->threads.len; i++) {
		struct trace_thread *t = &state->trace->threads.data[i];

		if (answers->len && is_unread(&t->raw))
			walk_thread(state->walking, t);
		for (size_t k = 0; ok && k < t->raw.len; k++)
			if (t->raw.data[k].flags & FRAME_UNREAD)
				ok = want_code(snap, t->raw.data[k].pc, &state->seen, wants);
	}
	return ok;
}

static const struct asker code_asker = {.max_rounds = MAX_ROUNDS, .ask = ask_code};

static int read_code(const struct walking *walking, struct trace *trace, struct err *err)
{
	struct code_state state = {.walking = walking, .trace = trace};
	int rc = ask_process(walking->target, walking->target->snap, &code_asker, &state, err);

	u64map_deinit(&state.seen);
	return rc;
}

/* /proc tells only pc and sp. Where a walk needed more, the thread is held once to learn the rest. */
static int complete_registers(const struct walking *walking, struct trace *trace, struct err *err)
{
	struct snapshot *snap = walking->target->snap;
	VEC(struct snap_thread *) missing = {0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < trace->threads.len; i++)
		if (trace->threads.data[i].raw.end == STACK_MISSING_REGISTER && !vec_push(&missing, &snap->threads.data[i]))
			rc = err_set(err, ENOMEM, "out of memory");
	if (rc == 0 && missing.len)
		rc = capture_complete_registers(walking->capture, snap, missing.data, missing.len, err);
	for (size_t i = 0; rc == 0 && missing.len && i < trace->threads.len; i++)
		if (trace->threads.data[i].raw.end == STACK_MISSING_REGISTER)
			walk_thread(walking, &trace->threads.data[i]);
	vec_deinit(&missing);
	return rc;
}

/* What they need to walk through code of their own: the stacks, which were copied, tell where that is. */
static int read_runtimes_code(const struct walking *walking, struct err *err)
{
	struct target *target = walking->target;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < walking->runtimes->len; i++) {
		const struct runtime *runtime = &walking->runtimes->data[i];

		if (runtime->ops->code)
			rc = ask_process(target, target->snap, runtime->ops->code, runtime->state, err);
	}
	return rc;
}

/* What tells of locks, before anything else that takes its time: it counts for threads that have not run when it was read. */
static int read_locks(const struct walking *walking, struct err *err)
{
	struct target *target = walking->target;
	const size_t ncopies = target->snap->copies.len;
	bool any = false;
	int rc = walking->wants_waits ? ask_process(target, target->snap, &parked_asker, NULL, err) : 0;

	for (size_t i = 0; rc == 0 && i < walking->runtimes->len; i++) {
		const struct runtime *runtime = &walking->runtimes->data[i];

		if (!runtime->ops->locks)
			continue;
		any = true;
		rc = ask_process(target, target->snap, runtime->ops->locks, runtime->state, err);
	}
	if (rc == 0 && (any || target->snap->copies.len > ncopies))
		capture_note_stillness(walking->capture, target->snap);
	return rc;
}

static int walk_live(const struct walking *walking, struct trace *trace, struct err *err)
{
	struct snapshot *snap = walking->target->snap;
	struct walk_state state = {.walking = walking, .trace = trace};
	int rc = read_locks(walking, err);

	if (rc == 0)
		rc = read_runtimes_code(walking, err);
	if (rc == 0)
		rc = capture_ask(walking->capture, snap, &walk_asker, &state, err);
	if (rc == 0 && !walking->walked)
		rc = read_code(walking, trace, err);
	if (rc == 0 && (strcmp(snap->capture.stop_mode, "auto") == 0 || strcmp(snap->capture.stop_mode, "hold") == 0))
		rc = complete_registers(walking, trace, err);
	for (size_t i = 0; rc == 0 && i < walking->runtimes->len; i++) {
		const struct runtime *runtime = &walking->runtimes->data[i];

		if (runtime->ops->asker)
			rc = capture_ask(walking->capture, snap, runtime->ops->asker, runtime->state, err);
		if (rc == 0 && runtime->ops->names)
			rc = ask_process(walking->target, snap, runtime->ops->names, runtime->state, err);
	}
	return rc;
}

static bool has_thread(const struct snapshot *snap, pid_t tid)
{
	for (size_t i = 0; i < snap->threads.len; i++)
		if (snap->threads.data[i].tid == tid)
			return true;
	return false;
}

/* Those that a thread runs belong to it: when others were asked for (-t), they were not. */
static int add_tasks(const struct walking *walking, struct trace *trace, struct err *err)
{
	const struct snapshot *snap = walking->target->snap;
	struct trace_tasks *tasks = &trace->tasks;
	size_t kept = 0;

	if (!runtimes_tasks(walking->runtimes, tasks))
		return err_set(err, ENOMEM, "out of memory");
	if (tasks->cut)
		notes_add(&trace->notes, "of the tasks the first %zu are shown: there are more", tasks->len);
	for (size_t i = 0; i < tasks->len; i++) {
		tasks->data[i].snap = snap;
		if (!tasks->data[i].tid || has_thread(snap, tasks->data[i].tid))
			tasks->data[kept++] = tasks->data[i];
	}
	tasks->len = kept;
	return 0;
}

static int add_runtimes(const struct walking *walking, struct trace *trace, struct err *err)
{
	for (size_t i = 0; i < trace->threads.len; i++) {
		struct trace_thread *t = &trace->threads.data[i];

		if (!runtimes_frames(walking->runtimes, t->snap, t->thread, &t->raw))
			return err_set(err, ENOMEM, "out of memory");
		runtimes_thread(walking->runtimes, t->snap, t->thread, &t->runtime);
	}
	for (size_t i = 0; i < trace->threads.len; i++) /* what others know counts, too */
		runtimes_waits(walking->runtimes, trace->threads.data[i].snap, trace->threads.data[i].thread, &trace->threads.data[i].told);
	runtimes_note(walking->runtimes, &trace->notes);
	return add_tasks(walking, trace, err);
}

int walking_run(const struct walking *walking, struct trace *trace, struct err *err)
{
	struct snapshot *snap = walking->target->snap;
	int rc = 0;

	if (!vec_reserve(&trace->threads, snap->threads.len))
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < snap->threads.len; i++)
		vec_push(&trace->threads, (struct trace_thread){.snap = snap, .thread = &snap->threads.data[i]});
	if (walking->capture)
		rc = walk_live(walking, trace, err);
	else
		for (size_t i = 0; i < trace->threads.len; i++)
			walk_thread(walking, &trace->threads.data[i]);
	return rc < 0 ? rc : add_runtimes(walking, trace, err);
}
