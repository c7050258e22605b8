/* SPDX-License-Identifier: MIT */
#include "runtime/python/task_stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "runtime/python/coroutine.h"
#include "runtime/python/locals.h"
#include "runtime/python/strings.h"
#include "runtime/python/types.h"
#include "runtime/python/values.h"
#include "target/recorder.h"

enum { MAX_LOCALS_FRAMES = 4096 }; /* of all tasks */

const char python_more_frames[] = "more frames of Python, which are not shown";

/* The coroutines of a task, the outermost first, as they await each other. */
struct chain {
	struct python_frame frames[PYTHON_MAX_AWAITS];
	size_t len;
	bool cut;
	enum python_coroutine_state state; /* of the outermost, which is the task's own */
	uint64_t awaits;     /* what the innermost awaits, and is no coroutine; 0: nothing */
	const char *problem; /* why there are no more */
};

struct known_stack {
	struct stack stack;
	const struct python_frame *frames; /* as many as it has */
};

struct telling {
	struct python_codes *codes;
	bool locals;
	unsigned locals_left; /* frames whose variables may still be read */
	struct trace_tasks *out;
	struct u64map places; /* by task: its position in the list, */
	struct u64map stacks; /* and by hash: struct known_stack */
	uint64_t hint;
};

/* Of a task that has changed nothing is certain. */
static void forget(struct chain *chain)
{
	chain->problem = "it went on while it was read";
	chain->len = 0;
	chain->cut = false;
	chain->awaits = 0;
}

static void read_chain(struct python_codes *codes, uint64_t coroutine, struct chain *out)
{
	out->len = 0;
	out->cut = false;
	out->awaits = 0;
	out->problem = NULL;
	out->state = PYTHON_COROUTINE_SUSPENDED;
	if (!python_is_coroutine(codes->layout, codes->mem, coroutine)) {
		out->awaits = coroutine;
		return;
	}
	while (coroutine) {
		struct python_coroutine read;

		out->awaits = 0;
		out->cut = out->len == PYTHON_MAX_AWAITS;
		if (out->cut)
			return;
		if (!python_coroutine_read(codes, coroutine, &read) || (out->len && read.state == PYTHON_COROUTINE_ENDED)) {
			out->problem = "a coroutine could not be read, or went on meanwhile";
			return;
		}
		if (!out->len)
			out->state = read.state;
		if (read.state == PYTHON_COROUTINE_ENDED)
			return;
		out->frames[out->len++] = read.frame;
		out->awaits = read.awaits;
		coroutine = read.awaits ? python_awaited_coroutine(codes->layout, codes->mem, read.awaits) : 0;
	}
}

/* "_asyncio.Future" and "Future" are the same to a reader. NULL: it is None, or cannot be read. */
static const char *name_type(struct python_codes *codes, uint64_t object)
{
	struct python_type type;
	const char *dot;

	if (!python_type_read(codes->mem, object, &type) || python_is_a(codes->mem, object, "NoneType"))
		return NULL;
	dot = strrchr(type.name, '.');
	return arena_intern_n(codes->arena, dot ? dot + 1 : type.name, strlen(dot ? dot + 1 : type.name));
}

static const char *read_name(struct python_codes *codes, uint64_t object)
{
	uint64_t number;
	char text[32];
	int len;

	if (python_int(codes->layout, codes->mem, object, &number)) {
		len = snprintf(text, sizeof(text), "Task-%" PRIu64, number);
		return arena_intern_n(codes->arena, text, (size_t)len);
	}
	if (!python_is_a(codes->mem, object, "str"))
		return NULL;
	return python_string(codes->layout, codes->mem, object, codes->arena);
}

/* No two calls of a function have the same variables. */
static bool are_equal(const struct known_stack *known, const struct chain *chain, bool locals)
{
	bool same = !locals && known->stack.len == chain->len + chain->cut;

	for (size_t i = 0; same && i < chain->len; i++)
		same = known->frames[i].code == chain->frames[i].code && known->frames[i].instr == chain->frames[i].instr;
	return same;
}

static uint64_t hash_chain(const struct chain *chain)
{
	uint64_t hash = hash_u64(HASH_SEED, chain->cut);

	for (size_t i = 0; i < chain->len; i++) {
		hash = hash_u64(hash, chain->frames[i].code);
		hash = hash_u64(hash, chain->frames[i].instr);
	}
	return hash;
}

static bool name_frame(struct telling *t, const struct python_frame *from, struct frame *frame)
{
	struct python_codes *codes = t->codes;

	*frame = (struct frame){.kind = FRAME_KIND_PYTHON};
	python_code_name(codes->layout, python_codes_find(codes, from->code, 0), from->instr, frame);
	if (!t->locals || !t->locals_left)
		return true;
	t->locals_left--;
	return python_locals_read(codes->layout, codes->mem, codes->mem, from->address, from->code, codes->arena, &frame->locals,
				  &frame->nlocals);
}

/* The innermost first; a mark stands for those that are further in. */
static struct known_stack *make_stack(struct telling *t, const struct chain *chain)
{
	struct python_codes *codes = t->codes;
	size_t len = chain->len + chain->cut;
	struct known_stack *known = arena_alloc(codes->arena, sizeof(*known));
	struct frame *frames = arena_alloc(codes->arena, (len + 1) * sizeof(*frames));
	struct python_frame *copies = arena_alloc(codes->arena, (chain->len + 1) * sizeof(*copies));

	if (!known || !frames || !copies)
		return NULL;
	memcpy(copies, chain->frames, chain->len * sizeof(*copies));
	if (chain->cut)
		frames[0] = (struct frame){.kind = FRAME_KIND_MARKER, .symbol = python_more_frames};
	for (size_t i = 0; i < chain->len; i++)
		if (!name_frame(t, &chain->frames[chain->len - 1 - i], &frames[i + chain->cut]))
			return NULL;
	known->frames = copies;
	known->stack.data = frames;
	known->stack.len = known->stack.cap = len;
	return known;
}

/* The one that tasks with the same frames have. NULL when memory is exhausted. */
static const struct stack *find_stack(struct telling *t, const struct chain *chain)
{
	for (uint64_t hash = hash_chain(chain);; hash++) {
		struct known_stack *known;
		bool created;
		uint64_t *slot = u64map_put(&t->stacks, hash, &created);

		if (!slot)
			return NULL;
		known = created ? make_stack(t, chain) : (struct known_stack *)(uintptr_t)*slot;
		*slot = (uintptr_t)known;
		if (!known || created || are_equal(known, chain, t->locals))
			return known ? &known->stack : NULL;
	}
}

/* The future that a task waits for, and which task that is, if it is one that is listed. */
static void tell_awaited(struct telling *t, uint64_t waiter, const struct chain *chain, struct trace_task *task)
{
	uint64_t *place = waiter ? u64map_find(&t->places, waiter) : NULL;
	struct python_task_parts parts;

	task->awaits = name_type(t->codes, waiter);
	if (place && python_task_parts(t->codes->layout, t->codes->mem, waiter, &t->hint, &parts))
		task->awaits_task = read_name(t->codes, parts.name);
	task->through = name_type(t->codes, chain->awaits);
	if (task->through && strcmp(task->through, "FutureIter") == 0)
		task->through = NULL; /* it is how every future is awaited */
}

static bool tell_task(struct telling *t, const struct python_task_entry *entry)
{
	static const enum task_state states[] = {
		[PYTHON_COROUTINE_CREATED] = TASK_CREATED,
		[PYTHON_COROUTINE_SUSPENDED] = TASK_SUSPENDED,
		[PYTHON_COROUTINE_RUNNING] = TASK_RUNNING,
	};
	struct trace_task task = {.runtime = "python", .library = "asyncio", .tid = entry->tid};
	struct python_task_parts parts;
	struct chain chain;

	if (!python_task_parts(t->codes->layout, t->codes->mem, entry->object, &t->hint, &parts))
		return true;
	read_chain(t->codes, parts.coroutine, &chain);
	if (chain.state == PYTHON_COROUTINE_ENDED)
		return true; /* meanwhile */
	if (entry->has_changed)
		forget(&chain);
	task.state = states[chain.state];
	task.name = read_name(t->codes, parts.name);
	task.problem = chain.problem;
	task.stack = find_stack(t, &chain);
	if (task.state == TASK_SUSPENDED && !entry->has_changed)
		tell_awaited(t, parts.waiter, &chain, &task);
	return task.stack && vec_push(t->out, task);
}

bool python_task_stacks(struct python_codes *codes, const struct python_task_list *list, bool locals, struct trace_tasks *out)
{
	struct telling t = {.codes = codes, .locals = locals, .locals_left = MAX_LOCALS_FRAMES, .out = out};
	bool ok = true, created;

	for (size_t i = 0; ok && i < list->len; i++)
		ok = u64map_put(&t.places, list->data[i].object, &created);
	for (size_t i = 0; ok && i < list->len; i++)
		ok = tell_task(&t, &list->data[i]);
	u64map_deinit(&t.places);
	u64map_deinit(&t.stacks);
	return ok;
}

static bool are_same_coroutines(const struct python_coroutine *a, const struct python_coroutine *b)
{
	return a->state == b->state && a->frame.code == b->frame.code && a->frame.instr == b->frame.instr && a->awaits == b->awaits;
}

static bool is_same_task(const struct python_layout *layout, struct mem *before, struct mem *now, uint64_t object, uint64_t *hint)
{
	struct python_task_parts a, b;
	uint64_t coroutine;

	if (!python_task_parts(layout, before, object, hint, &a) || !python_task_parts(layout, now, object, hint, &b) ||
	    a.coroutine != b.coroutine || a.waiter != b.waiter)
		return false;
	coroutine = python_is_coroutine(layout, before, a.coroutine) ? a.coroutine : 0;
	for (int i = 0; coroutine && i < PYTHON_MAX_AWAITS; i++) {
		struct python_coroutine x, y;

		if (!python_coroutine_peek(layout, before, coroutine, &x) || !python_coroutine_peek(layout, now, coroutine, &y) ||
		    !are_same_coroutines(&x, &y))
			return false;
		coroutine = python_awaited_coroutine(layout, before, x.awaits);
		if (python_awaited_coroutine(layout, now, x.awaits) != coroutine)
			return false;
	}
	return true;
}

bool python_tasks_check(const struct python_codes *codes, struct memory *vm, const struct snapshot *snap,
			struct python_task_list *list, bool *changed)
{
	struct snapshot *scratch = list->len ? snapshot_create(snap->pid, snap->arch) : NULL; /* which has nothing yet */
	struct process_recorder now;
	uint64_t hint = 0;
	bool ok = scratch && process_recorder_init(&now, vm, scratch);

	*changed = false;
	for (size_t i = 0; ok && i < list->len; i++) {
		now.passing = true;
		list->data[i].has_changed = !is_same_task(codes->layout, codes->mem, &now.mem, list->data[i].object, &hint);
		*changed |= list->data[i].has_changed;
	}
	if (ok)
		process_recorder_deinit(&now);
	snapshot_destroy(scratch);
	return ok || !list->len;
}
