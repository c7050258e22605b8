/* SPDX-License-Identifier: MIT */
#include "runtime/python/python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "runtime/python/chain.h"
#include "runtime/python/code.h"
#include "runtime/python/find.h"
#include "runtime/python/gil.h"
#include "runtime/python/locals.h"
#include "runtime/python/names.h"
#include "runtime/python/place.h"
#include "runtime/python/roster.h"
#include "runtime/python/saved.h"
#include "runtime/python/strings.h"
#include "runtime/python/task_stacks.h"
#include "runtime/python/tasks.h"
#include "runtime/python/waits.h"
#include "runtime/replace.h"
#include "target/recorder.h"
#include "target/thread_copies.h"

enum { MAX_LOCALS_FRAMES = 128 };

static const char name[] = "python";

struct locals {
	const struct frame_local *data;
	uint32_t len;
};

struct python {
	struct target *target;
	struct python_layout layout;
	struct python_roster roster;
	struct arena *arena;
	struct process_recorder recorder;
	struct python_codes codes;
	struct thread_copies copies;
	struct u64map problems;    /* by tid: a sentence */
	bool wants_locals;
	struct u64map locals; /* by address of the frame: struct locals */
	struct python_task_list tasks;
	struct trace_tasks told; /* what there is to say of these, if tasks_told */
	bool tasks_told;
	struct u64map gils; /* by thread state: the lock as it was when its own thread was read */
	bool holders_unknown; /* of Locks: there was too much to look at */
	struct python_chain chain; /* the one that is being read, */
	struct python_chain part;  /* and what one thread state adds to it */
	uint32_t places[PYTHON_MAX_FRAMES];
	struct python_sightings *sightings;     /* from the first snapshot on */
	struct python_activations activations; /* as they were found, now or when the snapshot was saved: */
	struct u64map known_places;            /* then pc by anchor */
};

static void destroy(void *state)
{
	struct python *py = state;

	if (!py)
		return;
	python_roster_deinit(&py->roster);
	vec_deinit(&py->tasks);
	vec_deinit(&py->told);
	u64map_deinit(&py->gils);
	thread_copies_deinit(&py->copies);
	u64map_deinit(&py->problems);
	u64map_deinit(&py->locals);
	free(py->sightings);
	vec_deinit(&py->activations);
	u64map_deinit(&py->known_places);
	python_codes_deinit(&py->codes);
	process_recorder_deinit(&py->recorder);
	arena_destroy(py->arena);
	free(py);
}

DEFINE_CLEANUP(python, struct python *, destroy)

static struct python *create(struct target *target)
{
	_cleanup_(cleanup_python) struct python *py = calloc(1, sizeof(*py));
	struct memory *live = target_is_live(target) ? &target->memory : NULL;

	if (!py)
		return NULL;
	py->target = target;
	py->arena = arena_create();
	if (!py->arena || !process_recorder_init(&py->recorder, live, target->snap))
		return NULL;
	py->codes = (struct python_codes){.layout = &py->layout, .mem = &py->recorder.mem, .arena = py->arena};
	return steal_ptr(py);
}

static int list_threads(struct python *py, struct err *err)
{
	return python_roster_list(&py->roster, &py->layout, py->target, err);
}

/* The thread that has the lock is likely to be held soon. */
static void foresee_codes(struct python *py, uint64_t interp)
{
	struct mem *mem = &py->target->memory.mem;
	struct python_gil gil;

	if (!python_gil_read(&py->layout, mem, interp, &gil) || !gil.holder)
		return;
	python_chain_read(&py->layout, mem, gil.holder, &py->part);
	python_sightings_foresee(py->sightings, &py->layout, mem, &py->part);
}

static void refresh(void *state)
{
	struct python *py = state;

	if (!py->sightings)
		py->sightings = python_sightings_create();
	if (list_threads(py, NULL) == 0 && py->sightings)
		foresee_codes(py, py->roster.listed.data[0].interp);
}

static void put_version(const struct python_layout *layout, char *out, size_t size)
{
	unsigned version = (unsigned)layout->at[PY_VERSION];

	if (!version)
		snprintf(out, size, "%s", "");
	else if (version & 0xff) /* its level is never 0 */
		snprintf(out, size, "3.%u.%u", version >> 16 & 0xff, version >> 8 & 0xff);
	else
		snprintf(out, size, "3.%u", version >> 16 & 0xff);
}

static bool detect_live(struct target *target, struct python *py)
{
	struct snap_runtime found = {.name = name};
	struct python_symbols symbols;
	struct err err = {0};
	char version[32];
	int rc;

	if (!python_find(target, &symbols))
		return false;
	rc = python_layout_read(&symbols, &target->memory.mem, &err, &py->layout);
	if (rc == 0)
		rc = list_threads(py, &err);
	put_version(&py->layout, version, sizeof(version));
	found.version = version[0] ? version : NULL;
	found.problem = rc < 0 ? err.msg : NULL;
	found.facts = py->layout.at;
	found.nfacts = PY_WORDS;
	return snapshot_add_runtime(target->snap, &found) && rc == 0;
}

static struct python_saved saved_parts(struct python *py, struct python_threads *threads)
{
	return (struct python_saved){&py->layout, threads, py->sightings, &py->activations, &py->tasks};
}

static bool load_saved(const struct snap_runtime *runtime, struct python *py, struct python_threads *threads)
{
	const struct python_saved parts = saved_parts(py, threads);
	bool created, ok = py->sightings && python_saved_load(runtime, &parts);

	for (size_t i = 0; ok && i < threads->len; i++)
		ok = python_roster_add(&py->roster, &threads->data[i]);
	for (uint32_t i = 0; ok && i < py->sightings->len; i++)
		if (py->sightings->data[i].gone)
			ok = python_codes_give_up(&py->codes, py->sightings->data[i].code, py->sightings->data[i].version);
	for (size_t i = 0; ok && i < py->activations.len; i++) {
		uint64_t *slot = u64map_put(&py->known_places, py->activations.data[i].anchor, &created);

		ok = slot;
		if (ok)
			*slot = py->activations.data[i].pc;
	}
	return ok;
}

static bool detect_saved(struct target *target, struct python *py)
{
	const struct snap_runtime *saved = snapshot_find_runtime(target->snap, name);
	struct python_threads threads = {0};
	bool ok;

	py->sightings = python_sightings_create();
	ok = saved && !saved->problem && load_saved(saved, py, &threads);
	vec_deinit(&threads);
	return ok;
}

static bool detect(struct target *target, void **state)
{
	_cleanup_(cleanup_python) struct python *py = NULL;
	bool live = target_is_live(target);

	if (live ? !python_is_likely(&target->snap->maps, &target->memory.mem) : !snapshot_find_runtime(target->snap, name))
		return false;
	py = create(target);
	if (!py || !(live ? detect_live(target, py) : detect_saved(target, py)))
		return false;
	*state = steal_ptr(py);
	return true;
}

/* All that can change while the thread runs; the rest is read when it is let go. */
static void read_thread(void *state, pid_t tid, struct mem *mem)
{
	struct python *py = state;
	const struct python_thread *thread = python_roster_find(&py->roster, tid);
	struct python_gil gil;

	for (; thread; thread = python_roster_find_other(&py->roster, thread)) {
		if (!python_tstate_is(&py->layout, mem, thread->tstate, thread->thread, thread->native))
			continue;
		python_chain_read(&py->layout, mem, thread->tstate, &py->chain);
		if (py->chain.problem)
			return;
		if (py->sightings)
			python_sightings_note(py->sightings, &py->layout, &py->target->memory.mem, &py->chain);
		python_gil_read(&py->layout, mem, thread->interp, &gil); /* only to be kept */
		for (size_t i = 0; py->wants_locals && i < py->chain.len && i < MAX_LOCALS_FRAMES; i++)
			python_locals_touch(&py->layout, mem, py->chain.frames[i].address);
	}
}

static const char no_code[] = "a frame does not lead to a code object";

/* That no frame comes twice, and that each is at an instruction of its code object. */
static const char *check_frames(struct python *py)
{
	struct u64map seen = {0};
	const char *problem = NULL;

	for (size_t i = 0; !problem && i < py->chain.len; i++) {
		const struct python_frame *frame = &py->chain.frames[i];
		const struct python_code *code = python_codes_find(&py->codes, frame->code, frame->version);
		int64_t offset;
		bool created;

		if (!code || (!code->valid && !code->gone))
			problem = no_code;
		else if (code->valid && !python_code_offset(&py->layout, code, frame->instr, &offset))
			problem = "a frame is not at an instruction of its function";
		else if (u64map_put(&seen, frame->address, &created) && !created)
			problem = "its frames form a ring";
	}
	u64map_deinit(&seen);
	return problem;
}

/*
 * Whether the thread has the lock, as of the instant at which it was read itself: only who has it can let go of it. What others
 * saw may be of another instant.
 */
static bool take_gil(struct python *py, struct mem *mem, const struct python_thread *own)
{
	struct python_gil gil, *copy;
	uint64_t *slot;
	bool created;

	if (!python_gil_read(&py->layout, mem, own->interp, &gil))
		return true;
	slot = u64map_put(&py->gils, own->tstate, &created);
	copy = slot && created ? arena_alloc(py->arena, sizeof(*copy)) : NULL;
	if (!slot || (created && !copy))
		return false;
	if (created)
		*slot = (uintptr_t)copy;
	*(struct python_gil *)(uintptr_t)*slot = gil;
	return true;
}

/*
 * Puts the frames of one more interpreter where they belong, by what they have on the C stack: the frames of one that calls
 * another are further out. Up to 3.10 the interpreter that was made last comes first.
 */
static void add_part(struct python *py)
{
	struct python_chain *chain = &py->chain;
	size_t from = chain->len;

	for (size_t i = 0; i < py->part.len && chain->len < PYTHON_MAX_FRAMES; i++) {
		size_t at = chain->len++;

		while (at > 0 && from && chain->frames[at - 1].anchor > py->part.frames[i].anchor) {
			chain->frames[at] = chain->frames[at - 1];
			at--;
		}
		chain->frames[at] = py->part.frames[i];
	}
	chain->cut |= py->part.cut || from + py->part.len > PYTHON_MAX_FRAMES;
}

/* The variables of the frames in py->chain. */
static bool take_locals(struct python *py, struct mem *own)
{
	for (size_t i = 0; i < py->chain.len && i < MAX_LOCALS_FRAMES; i++) {
		const struct python_frame *frame = &py->chain.frames[i];
		bool created;
		uint64_t *slot = u64map_put(&py->locals, frame->address, &created);
		struct locals *locals = slot ? arena_alloc(py->arena, sizeof(*locals)) : NULL;

		if (!locals || !python_locals_read(&py->layout, own, &py->recorder.mem, frame->address, frame->code, py->arena,
						   &locals->data, &locals->len))
			return false;
		*slot = (uintptr_t)locals;
	}
	return true;
}

/* The chain of a thread in py->chain, from what was copied; NULL, or why there is none. */
static const char *take_chain(struct python *py, const struct snapshot *snap, const struct snap_thread *thread,
			      const struct python_thread *own)
{
	struct thread_copies_mem copies;
	const char *problem = NULL;
	bool is_found = false;

	py->chain.len = 0;
	py->chain.cut = false;
	if (thread->status != THREAD_CAPTURED)
		return NULL; /* it says why by itself */
	if (thread->capture == CAPTURE_MOVED)
		return "it ran while it was read";
	if (!thread_copies_mem_init(&copies, &py->copies, snap, thread))
		problem = "out of memory";
	for (; own && !problem; own = python_roster_find_other(&py->roster, own)) {
		/* A new thread's is its creator's for a moment. */
		if (!python_tstate_is(&py->layout, &copies.mem, own->tstate, own->thread, own->native))
			continue;
		is_found = true;
		python_chain_read(&py->layout, &copies.mem, own->tstate, &py->part);
		problem = take_gil(py, &copies.mem, own) ? py->part.problem : "out of memory";
		add_part(py);
	}
	if (!problem && !is_found)
		problem = "its thread state changed while it was read";
	if (!problem && py->sightings && !python_sightings_tell(py->sightings, &py->chain))
		problem = no_code;
	if (!problem)
		problem = check_frames(py);
	if (!problem && py->wants_locals && !take_locals(py, &copies.mem))
		problem = "out of memory";
	if (problem)
		py->chain.len = 0;
	return problem;
}

/* Which thread has which thread state is known only now. */
static bool keep_facts(struct python *py)
{
	struct snap_runtime *runtime = snapshot_find_runtime(py->target->snap, name);
	const struct python_saved parts = saved_parts(py, &py->roster.known);

	return runtime && py->sightings && python_saved_keep(&parts, py->target->snap, runtime);
}

/* Locks */

static struct python_waits waits_of(struct python *py)
{
	return (struct python_waits){
		.layout = &py->layout,
		.roster = &py->roster,
		.mem = &py->recorder.mem,
		.copies = &py->copies,
		.gils = &py->gils,
		.now = &py->target->memory.mem,
		.chain = &py->part,
		.gave_up = &py->holders_unknown,
	};
}

static bool ask_locks(void *state, const struct snapshot *snap, const struct snap_thread *thread, const struct ask *answers,
		      struct ask *wants)
{
	const struct python_waits waits = waits_of(state);

	return python_waits_ask(&waits, snap, answers, wants);
}

static const struct asker locks = {.max_rounds = PYTHON_WAITS_ROUNDS, .ask = ask_locks};

static void tell_waits(void *state, const struct snapshot *snap, const struct snap_thread *thread, struct runtime_wait *out)
{
	const struct python_waits waits = waits_of(state);

	python_waits_tell(&waits, snap, thread, out);
}

static const char *note_of_locks(void *state)
{
	const struct python *py = state;

	return py->holders_unknown ? "who has Locks of Python that do not record it is not known: there are too many frames of Python to look at" : NULL;
}

/* Much is read to find few names and tasks, and only these are kept. */
static bool find_names(struct python *py)
{
	struct process_recorder passing;
	bool ok;

	if (!process_recorder_init(&passing, &py->target->memory, py->target->snap))
		return false;
	passing.passing = true;
	python_names_read(&py->layout, &passing.mem, &py->roster.known);
	ok = python_tasks_list(&py->layout, &passing.mem, &py->roster.known, &py->tasks);
	py->tasks.cut |= process_recorder_is_full(&passing);
	process_recorder_deinit(&passing);
	return ok;
}

/* When the process is looked at, so that what it takes is kept, and when a saved one is shown. */
static bool tell_tasks(struct python *py)
{
	if (!py->tasks_told && !python_task_stacks(&py->codes, &py->tasks, py->wants_locals, &py->told))
		return false;
	py->tasks_told = true;
	py->tasks.cut |= process_recorder_is_full(&py->recorder);
	py->layout.at[PY_TASKS_CUT] = py->tasks.cut;
	return true;
}

/* Those that are still the same, now that all of them were read, were so all the time. */
static void confirm_codes(struct python *py)
{
	for (uint32_t i = 0; py->sightings && i < py->sightings->len; i++) {
		struct python_sighting *seen = &py->sightings->data[i];

		seen->gone = !python_codes_confirm(&py->codes, &py->target->memory.mem, seen->code, seen->version);
	}
}

/* Names, files and line tables: read through memory that keeps them, so that nothing is left to be wanted. */
static bool ask_names(void *state, const struct snapshot *snap, const struct snap_thread *thread, const struct ask *answers,
		      struct ask *wants)
{
	struct python *py = state;
	bool changed;

	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct python_thread *own = python_roster_find(&py->roster, snap->threads.data[i].tid);

		if (own)
			take_chain(py, snap, &snap->threads.data[i], own);
	}
	if (!find_names(py))
		return false;
	for (size_t i = 0; i < py->roster.known.len; i++)
		if (py->roster.known.data[i].name)
			python_string(&py->layout, &py->recorder.mem, py->roster.known.data[i].name, py->arena); /* to be kept */
	if (!tell_tasks(py) || !python_tasks_check(&py->codes, &py->target->memory, snap, &py->tasks, &changed))
		return false;
	if (changed) { /* they are told anew, as such */
		py->tasks_told = false;
		py->told.len = 0;
	}
	confirm_codes(py);
	return keep_facts(py);
}

static const struct asker names = {.max_rounds = 0, .ask = ask_names};

static void set_problem(struct python *py, pid_t tid, const char *problem)
{
	bool created;
	uint64_t *slot = problem ? u64map_put(&py->problems, (uint64_t)tid, &created) : NULL;

	if (slot)
		*slot = (uintptr_t)problem;
}

/* Tells the frames in py->chain, at the places that were found for them. */
static bool add_frames(struct python *py, bool versions, struct raw_stack *raw)
{
	bool ok = true;

	for (size_t i = 0; ok && i < py->chain.len; i++) {
		const struct python_frame *frame = &py->chain.frames[i];

		ok = vec_push(&raw->runtime,
			      (struct runtime_frame){.code = frame->code,
						     .place = frame->instr,
						     .raw = py->places[i],
						     .call = py->wants_locals ? frame->address : 0,
						     .version = versions ? python_code_version(&py->layout, py->codes.mem, frame->code)
									 : frame->version,
						     .runtime = FRAME_KIND_PYTHON});
	}
	if (ok && py->chain.cut && py->chain.len)
		ok = vec_push(&raw->runtime, (struct runtime_frame){.raw = py->places[py->chain.len - 1], .runtime = FRAME_KIND_PYTHON});
	return ok;
}

/* A stack is not whole without all of its frames, and the names that they have. */
static void doubt(struct python *py, struct raw_stack *raw)
{
	size_t gone = 0;

	if (py->chain.cut && raw->end == STACK_COMPLETE) {
		raw->end = STACK_DEPTH_LIMIT;
		raw->end_pc = 0; /* the walk itself came to its end */
		snprintf(raw->error, sizeof(raw->error), "there are more than %d frames of Python, and the outermost of them are missing",
			 PYTHON_MAX_FRAMES);
	}
	for (size_t i = 0; i < py->chain.len; i++) {
		const struct python_code *code = python_codes_find(&py->codes, py->chain.frames[i].code, py->chain.frames[i].version);

		gone += code && code->gone;
	}
	if (!gone || raw->end != STACK_COMPLETE)
		return;
	raw->end = STACK_DOUBTFUL;
	raw->end_pc = 0;
	snprintf(raw->error, sizeof(raw->error), "%zu frame%s of Python without a name: the code object was freed before it was read",
		 gone, gone == 1 ? "" : "s");
}

/* Who replays the snapshot may not have the files that it takes to find them again. */
static bool note_places(struct python *py, const struct raw_stack *raw)
{
	uint64_t last = 0;
	bool ok = true;

	for (size_t i = 0; ok && i < py->chain.len; i++) {
		struct python_activation activation = {.anchor = py->chain.frames[i].anchor};

		if (activation.anchor == last || py->places[i] == raw->len)
			continue;
		last = activation.anchor;
		activation.pc = raw->data[py->places[i]].pc;
		ok = vec_push(&py->activations, activation);
	}
	return ok;
}

static bool frames(void *state, const struct snapshot *snap, const struct snap_thread *thread, struct raw_stack *raw)
{
	struct python *py = state;
	const struct python_thread *own = python_roster_find(&py->roster, thread->tid);
	const char *problem;

	if (!own)
		return true;
	problem = take_chain(py, snap, thread, own);
	if (!problem && py->chain.len)
		problem = python_place(&py->layout, &snap->maps, raw, &py->known_places, &py->chain, py->places);
	set_problem(py, thread->tid, problem);
	if (problem)
		return true;
	doubt(py, raw);
	return add_frames(py, false, raw) && (!target_is_live(py->target) || note_places(py, raw));
}

static void tell_thread(void *state, const struct snapshot *snap, const struct snap_thread *thread, struct thread_runtime *out)
{
	struct python *py = state;
	uint64_t *problem = u64map_find(&py->problems, (uint64_t)thread->tid);
	const struct python_thread *own = python_roster_find(&py->roster, thread->tid);

	if (!own)
		return;
	out->runtime = name;
	for (; own; own = python_roster_find_other(&py->roster, own)) { /* the main interpreter's is the last */
		uint64_t *slot = u64map_find(&py->gils, own->tstate);
		const struct python_gil *gil = slot ? (const struct python_gil *)(uintptr_t)*slot : NULL;
		enum gil_wait wait;

		out->has_daemon |= own->name != 0;
		out->is_daemon = own->is_daemon;
		if (own->name)
			out->name = python_string(&py->layout, &py->recorder.mem, own->name, py->arena);
		out->has_gil |= gil != NULL;
		out->holds_gil |= gil && gil->holder == own->tstate;
		wait = gil ? python_gil_find_wait(gil, snap->arch, thread) : GIL_NOT_AWAITED;
		out->waits_for_gil |= wait == GIL_AWAITED;
		out->may_wait_for_gil |= wait == GIL_WAIT_UNKNOWN;
	}
	out->waits_for_gil &= !out->holds_gil;
	out->may_wait_for_gil &= !out->holds_gil && !out->waits_for_gil;
	if (problem)
		out->problem = (const char *)(uintptr_t)*problem;
}

static bool tasks(void *state, struct trace_tasks *out)
{
	struct python *py = state;

	/* Where activations are is known since the stacks were walked. */
	if (!tell_tasks(py) || (target_is_live(py->target) && py->activations.len && !keep_facts(py)))
		return false;
	out->cut |= py->tasks.cut;
	for (size_t i = 0; i < py->told.len; i++)
		if (!vec_push(out, py->told.data[i]))
			return false;
	return true;
}

static struct frame name_frame(struct python *py, const struct raw_stack *raw, const struct runtime_frame *from)
{
	const struct python_code *code = python_codes_find(&py->codes, from->code, from->version);
	struct frame frame = {.kind = FRAME_KIND_PYTHON, .address = from->raw < raw->len ? raw->data[from->raw].pc : 0};
	uint64_t *locals = from->call ? u64map_find(&py->locals, from->call) : NULL;

	if (!from->code) {
		frame.kind = FRAME_KIND_MARKER;
		frame.symbol = python_more_frames;
		return frame;
	}
	if (!code || !code->name)
		return frame;
	if (locals) {
		frame.locals = ((const struct locals *)(uintptr_t)*locals)->data;
		frame.nlocals = ((const struct locals *)(uintptr_t)*locals)->len;
	}
	python_code_name(&py->layout, code, from->place, &frame);
	return frame;
}

static bool merge(void *state, const struct raw_stack *raw, bool keep, struct stack *stack)
{
	struct python *py = state;
	struct stack_merge merge = stack_merge_begin(stack, keep);
	struct stack own = {0};
	uint32_t begin, last;
	bool ok = true;

	for (size_t i = 0, next; ok && py && i < raw->runtime.len; i = next) {
		const struct runtime_frame *first = &raw->runtime.data[i];

		own.len = 0;
		for (next = i; ok && next < raw->runtime.len; next++) {
			const struct runtime_frame *frame = &raw->runtime.data[next];

			if (frame->runtime != first->runtime || frame->raw != first->raw)
				break;
			if (frame->runtime == FRAME_KIND_PYTHON)
				ok = vec_push(&own, name_frame(py, raw, frame));
		}
		last = python_last_native(stack, first->raw, next < raw->runtime.len ? raw->runtime.data[next].raw : UINT32_MAX);
		begin = python_first_native(stack, first->raw);
		if (own.len && begin < first->raw)
			own.data[0].tier = "JIT";
		stack_merge_replace(&merge, begin, last, own.data, own.len);
	}
	vec_deinit(&own);
	return stack_merge_end(&merge) && ok;
}

static bool describe(void *state, struct offcpu_runtime *out)
{
	const struct python *py = state;

	python_chain_describe(&py->layout, &out->python);
	python_code_describe(&py->layout, &out->python);
	return out->python.head < OFFCPU_PYTHON_HEAD && out->python.code_size < OFFCPU_PYTHON_HEAD;
}

/* Nothing of what was read before counts: the process runs on, and may have put something else there. */
static bool read_anew(struct python *py)
{
	bool ok;

	process_recorder_deinit(&py->recorder);
	ok = process_recorder_init(&py->recorder, &py->target->memory, py->target->snap);
	py->recorder.passing = true;
	return ok;
}

/* Threads that have ended are of no use any more. */
static void look(void *state, const struct maps *maps)
{
	struct python *py = state;

	python_roster_deinit(&py->roster);
	list_threads(py, NULL);
	read_anew(state);
}

/* A thread whose frames do not fit together is left with its native ones. */
static bool sleeping(void *state, pid_t tid, struct mem *mem, struct raw_stack *raw)
{
	struct python *py = state;

	py->chain.len = 0;
	py->chain.cut = false;
	for (const struct python_thread *own = python_roster_find(&py->roster, tid); own; own = python_roster_find_other(&py->roster, own)) {
		if (!python_tstate_is(&py->layout, mem, own->tstate, own->thread, own->native))
			continue;
		python_chain_read(&py->layout, mem, own->tstate, &py->part);
		if (py->part.problem)
			return true;
		add_part(py);
	}
	if (!py->chain.len || python_place(&py->layout, &py->target->snap->maps, raw, &py->known_places, &py->chain, py->places))
		return true;
	return add_frames(py, true, raw);
}

/* Since 3.11 BPF tells of each frame what its activation has on the C stack. */
static bool place(void *state, const struct raw_stack *native, struct raw_stack *told)
{
	struct python *py = state;

	py->chain.len = 0;
	py->chain.cut = false;
	for (size_t i = 0; i < told->runtime.len; i++) {
		const struct runtime_frame *frame = &told->runtime.data[i];

		if (frame->runtime != FRAME_KIND_PYTHON || py->chain.len == PYTHON_MAX_FRAMES)
			return false;
		py->chain.cut |= !frame->code; /* there are more, as it says */
		if (frame->code)
			py->chain.frames[py->chain.len++] = (struct python_frame){.anchor = frame->more};
	}
	if (!py->chain.len || python_place(&py->layout, &py->target->snap->maps, native, &py->known_places, &py->chain, py->places))
		return false;
	for (size_t i = 0; i < told->runtime.len; i++)
		told->runtime.data[i].raw = py->places[i < py->chain.len ? i : py->chain.len - 1];
	return true;
}

static void name_threads(void *state, runtime_name_fn fn, void *arg)
{
	struct python *py = state;
	struct arena *arena = NULL;

	if (!read_anew(py) || list_threads(py, NULL) < 0)
		return;
	arena = arena_create();
	python_names_read(&py->layout, &py->recorder.mem, &py->roster.listed);
	for (size_t i = 0; arena && i < py->roster.listed.len; i++) {
		const struct python_thread *thread = &py->roster.listed.data[i];
		const char *text = thread->name ? python_string(&py->layout, &py->recorder.mem, thread->name, arena) : NULL;

		if (text)
			fn(arg, thread->tid, text);
	}
	arena_destroy(arena);
}

static void learn(void *state, const struct raw_stack *raw)
{
	struct python *py = state;
	bool fresh = false;

	for (size_t i = 0; i < raw->runtime.len; i++) {
		const struct runtime_frame *frame = &raw->runtime.data[i];

		if (frame->runtime != FRAME_KIND_PYTHON || !frame->code ||
		    python_codes_knows(&py->codes, frame->code, frame->version))
			continue;
		if (!fresh)
			fresh = read_anew(py);
		if (fresh)
			python_codes_find(&py->codes, frame->code, frame->version);
	}
	if (!fresh || !read_anew(py))
		return;
	for (size_t i = 0; i < raw->runtime.len; i++)
		if (raw->runtime.data[i].runtime == FRAME_KIND_PYTHON)
			python_codes_confirm(&py->codes, py->codes.mem, raw->runtime.data[i].code, raw->runtime.data[i].version);
}

/* Of a saved snapshot only if they were wanted when it was taken. */
static void want_locals(void *state)
{
	struct python *py = state;

	if (target_is_live(py->target))
		py->layout.at[PY_LOCALS] = true;
	py->wants_locals = py->layout.at[PY_LOCALS];
}

const struct runtime_ops python_runtime = {
	.name = name,
	.is_likely = python_is_likely,
	.detect = detect,
	.destroy = destroy,
	.refresh = refresh,
	.want_locals = want_locals,
	.read = read_thread,
	.names = &names,
	.frames = frames,
	.thread = tell_thread,
	.locks = &locks,
	.waits = tell_waits,
	.note = note_of_locks,
	.tasks = tasks,
	.describe = describe,
	.learn = learn,
	.name_threads = name_threads,
	.look = look,
	.sleeping = sleeping,
	.place = place,
	.merge = merge,
};
