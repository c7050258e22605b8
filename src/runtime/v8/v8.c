/* SPDX-License-Identifier: MIT */
#include "runtime/v8/v8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "runtime/replace.h"
#include "runtime/v8/frame.h"
#include "runtime/v8/layout.h"
#include "runtime/v8/names.h"
#include "runtime/v8/step.h"
#include "runtime/v8/wait_frames.h"
#include "unwind/unwind.h"

/*
 * V8 moves its objects, but only while the thread that they belong to runs. So what a sleeping thread's frames refer to is
 * read for that thread, and proved to be of its sleep (target/ask.h). What belongs to one that ran is read when it has been
 * let go: there every object must have the right type, and be the same when it is read again at the end.
 */

static const char name[] = "v8";

enum {
	MAX_THREAD = 8 << 20,  /* bytes that are read for a thread, and for all that ran together, */
	MAX_BYTES = 64 << 20,  /* and for all threads */
	MAX_THREADS = 4096,    /* with frames of V8 */
	MAX_CHECKS = 1 << 16,  /* words that are read a second time */
	ROUNDS = 40,
	THREAD_FACTS = 2,
};

/* What is saved of a thread besides its objects. */
enum thread_flag { THREAD_RAN = 1, THREAD_UNSURE = 2 };

struct v8_thread {
	pid_t tid;
	uint32_t flags; /* enum thread_flag */
	struct pages pages;
	struct v8_places places;
};

/* A word of an object that is read a second time. */
struct check {
	struct v8_thread *thread;
	uint64_t address;
};

struct v8 {
	struct target *target;
	struct v8_layout layout;
	const struct maps *maps; /* as they are now, while sleeping threads are walked; NULL: those of the snapshot */
	struct budget budget;
	uint64_t left; /* pieces that may still be read for all threads */
	struct pages ran; /* what is read for those that ran */
	VEC(struct v8_thread *) threads; /* those with frames of V8 */
	struct u64map seen; /* tid → position in it + 1; 0: it has none */
	struct u64map problems; /* tid → a sentence */
	VEC(struct check) checks;
	struct u64map checked; /* hash of a thread and an address */
	bool is_checking;
	struct v8_names named;
	struct v8_wait_frames waits;
};

/* Finding it */

static void destroy_thread(struct v8_thread *t)
{
	pages_deinit(&t->pages);
	vec_deinit(&t->places);
	free(t);
}

static void destroy(void *state)
{
	struct v8 *v8 = state;

	if (!v8)
		return;
	for (size_t i = 0; i < v8->threads.len; i++)
		destroy_thread(v8->threads.data[i]);
	vec_deinit(&v8->threads);
	pages_deinit(&v8->ran);
	u64map_deinit(&v8->seen);
	u64map_deinit(&v8->problems);
	vec_deinit(&v8->checks);
	u64map_deinit(&v8->checked);
	v8_wait_frames_deinit(&v8->waits);
	v8_names_deinit(&v8->named);
	free(v8);
}

static struct v8 *create(struct target *target)
{
	struct v8 *v8 = calloc(1, sizeof(*v8));

	if (!v8)
		return NULL;
	v8->target = target;
	v8->budget.left = UNWIND_BUDGET;
	v8->left = MAX_BYTES / PAGES_SIZE;
	pages_init(&v8->ran, MAX_THREAD);
	v8_wait_frames_init(&v8->waits, &v8->layout, &v8->named);
	if (v8_names_init(&v8->named))
		return v8;
	destroy(v8);
	return NULL;
}

DEFINE_CLEANUP(v8, struct v8 *, destroy)

/* The file that has it: the program, or a library of it. *code is an address of its code. */
static struct module *find_file(struct target *target, uint64_t *code)
{
	const struct map_entry *entry;
	struct module *module;
	uint64_t bias;
	size_t at = 0;

	while ((module = modules_next(target->modules, &at, &entry, &bias)))
		if (v8_layout_is_in(module->image)) {
			*code = entry->start;
			return module;
		}
	return NULL;
}

static bool detect_live(struct target *target, struct v8 *v8)
{
	struct snap_runtime found = {.name = name, .facts = v8->layout.facts, .nfacts = V8_FACT_COUNT};
	const uint64_t *facts = v8->layout.facts;
	struct err err = {0};
	char version[64];
	uint64_t code;
	struct module *module = find_file(target, &code);
	int rc;

	if (!module)
		return false;
	v8_layout_read(module->image, &v8->layout);
	v8->layout.facts[V8_CODE] = code;
	rc = v8_layout_check(&v8->layout, &err);
	snprintf(version, sizeof(version), "%u.%u.%u", (unsigned)facts[V8_MAJOR], (unsigned)facts[V8_MINOR],
		 (unsigned)facts[V8_BUILD]);
	found.version = v8_has(&v8->layout, V8_MAJOR) ? version : NULL;
	found.problem = rc < 0 ? err.msg : NULL;
	return snapshot_add_runtime(target->snap, &found) && rc == 0;
}

static struct v8_thread *add_thread(struct v8 *v8, pid_t tid)
{
	struct v8_thread *t = calloc(1, sizeof(*t));
	bool created;
	uint64_t *slot = t ? u64map_put(&v8->seen, (uint64_t)tid, &created) : NULL;

	if (!slot || !vec_push(&v8->threads, t)) {
		free(t);
		return NULL;
	}
	t->tid = tid;
	pages_init(&t->pages, MAX_THREAD);
	*slot = v8->threads.len;
	return t;
}

static struct v8_thread *find_thread(const struct v8 *v8, pid_t tid)
{
	const uint64_t *slot = u64map_find(&v8->seen, (uint64_t)tid);

	return slot && *slot ? v8->threads.data[*slot - 1] : NULL;
}

static bool detect_saved(struct target *target, struct v8 *v8)
{
	const struct snap_runtime *saved = snapshot_find_runtime(target->snap, name);
	uint32_t end = V8_FACT_COUNT; /* of the threads, if any were asked */

	if (!saved || saved->problem || saved->nfacts < V8_FACT_COUNT)
		return false;
	if (saved->nfacts > V8_FACT_COUNT)
		end = saved->nfacts - 1;
	if (end < saved->nfacts && (saved->facts[end] > MAX_THREADS || saved->facts[end] * THREAD_FACTS != end - V8_FACT_COUNT))
		return false;
	v8_layout_load(saved->facts, V8_FACT_COUNT, &v8->layout);
	if (v8_layout_check(&v8->layout, NULL) < 0 || !pages_load(&v8->ran, target->snap, 0))
		return false;
	for (uint32_t i = V8_FACT_COUNT; i < end; i += THREAD_FACTS) {
		pid_t tid = (pid_t)saved->facts[i];
		struct v8_thread *t = find_thread(v8, tid) || v8->threads.len >= MAX_THREADS ? NULL : add_thread(v8, tid);

		if (!t || !pages_load(&t->pages, target->snap, tid))
			return false;
		t->flags = (uint32_t)saved->facts[i + 1];
	}
	return true;
}

static bool detect(struct target *target, void **state)
{
	_cleanup_(cleanup_v8) struct v8 *v8 = NULL;
	bool live = target_is_live(target);

	if (!live && !snapshot_find_runtime(target->snap, name))
		return false;
	v8 = create(target);
	if (!v8 || !(live ? detect_live(target, v8) : detect_saved(target, v8)))
		return false;
	*state = steal_ptr(v8);
	return true;
}

/* Walking */

/* Its builtins are passed as any code of a file that has no unwind information. */
static bool owns(void *state, uint64_t pc)
{
	const struct v8 *v8 = state;

	return v8_is_made_code(v8->maps ? v8->maps : &v8->target->snap->maps, pc);
}

static enum step_result step(void *state, struct walk *w, struct caller *out)
{
	return v8_step(w, out);
}

static const struct stepper_ops stepper_ops = {.owns = owns, .step = step};

/* Reading */

static struct v8_process process_of(const struct v8 *v8, const struct snapshot *snap)
{
	return (struct v8_process){
		.layout = &v8->layout,
		.arch = snap->arch,
		.maps = v8->maps ? v8->maps : &snap->maps,
		.modules = v8->target->modules,
	};
}

/* Where the frames of V8 are in a stack that has been walked already; this walk only tells what they refer to. */
static bool find_places(struct v8 *v8, const struct snapshot *snap, const struct snap_thread *thread)
{
	const struct stepper stepper = {.ops = &stepper_ops, .state = v8};
	const struct unwind_options options = {.budget = &v8->budget, .steppers = &stepper, .nsteppers = 1};
	const struct v8_process process = process_of(v8, snap);
	struct v8_places places = {0};
	struct raw_stack raw = {0};
	struct snapshot_mem mem;
	struct v8_thread *t = NULL;
	bool created, ok;

	if (v8->threads.len >= MAX_THREADS)
		return true;
	unwind_thread(snap, v8->target->modules, thread, &options, &raw);
	snapshot_mem_init(&mem, snap, thread);
	ok = v8_places_find(&process, &mem.mem, &raw, &places);
	raw_stack_deinit(&raw);
	if (ok && places.len)
		t = add_thread(v8, thread->tid);
	if (t)
		t->places = places;
	else
		vec_deinit(&places);
	return ok && (t || places.len == 0) && u64map_put(&v8->seen, (uint64_t)thread->tid, &created);
}

/* Reads what there is; what is missing is then wanted. */
static void know_places(const struct v8 *v8, struct v8_thread *t, struct pages *pages)
{
	const struct heap heap = {.layout = &v8->layout, .pages = pages};
	struct v8_calls calls;
	struct js_frame frame;

	for (size_t i = 0; i < t->places.len; i++) {
		struct v8_place *place = &t->places.data[i];

		if (place->is_known || !v8_place_is_function(place))
			continue;
		pages->lacks = false;
		if (v8_place_calls(&heap, place, &calls))
			for (size_t k = 0; k < calls.len; k++)
				js_frame_read(&heap, place, &calls.data[k], &frame);
		place->is_known = !pages->lacks;
	}
}

/* Wants what is missing, as far as the limit of all threads allows. */
static bool want_pieces(struct v8 *v8, struct pages *pages, struct ask *wants)
{
	uint64_t n = 0;
	size_t first = wants->len;
	bool ok = pages_want(pages, wants);

	for (size_t i = first; i < wants->len; i++)
		n += wants->data[i].len / PAGES_SIZE;
	v8->left -= n < v8->left ? n : v8->left;
	return ok;
}

static void limit(const struct v8 *v8, struct pages *pages)
{
	if (pages->left > v8->left)
		pages->left = v8->left;
}

static bool ask_thread(void *state, const struct snapshot *snap, const struct snap_thread *thread,
		       const struct ask *answers, struct ask *wants)
{
	struct v8 *v8 = state;
	struct v8_thread *t;

	if (!u64map_find(&v8->seen, (uint64_t)thread->tid) && !find_places(v8, snap, thread))
		return false;
	t = find_thread(v8, thread->tid);
	if (!t)
		return true;
	if (thread->capture != CAPTURE_ASLEEP) {
		t->flags |= THREAD_RAN;
		return true;
	}
	if (!pages_take(&t->pages, answers))
		return false;
	limit(v8, &t->pages);
	know_places(v8, t, &t->pages);
	return want_pieces(v8, &t->pages, wants);
}

/* Its objects may have moved meanwhile: they are read as those of a thread that ran. */
static void forget_thread(void *state, const struct snapshot *snap, const struct snap_thread *thread)
{
	struct v8_thread *t = find_thread(state, thread->tid);

	if (!t)
		return;
	t->flags |= THREAD_RAN;
	pages_deinit(&t->pages);
	pages_init(&t->pages, 0);
	for (size_t i = 0; i < t->places.len; i++)
		t->places.data[i].is_known = false;
}

static const struct asker thread_asker = {.max_rounds = ROUNDS, .ask = ask_thread, .forget = forget_thread};

/* A word is checked once for a thread. */
static bool add_check(struct v8 *v8, struct v8_thread *t, uint64_t address, struct ask *wants)
{
	uint64_t key = hash_u64(hash_u64(HASH_SEED, (uint64_t)t->tid), address);
	bool created;

	if (v8->checks.len >= MAX_CHECKS) {
		t->flags |= THREAD_UNSURE;
		return true;
	}
	if (!u64map_put(&v8->checked, key, &created))
		return false;
	return !created || (vec_push(&v8->checks, (struct check){.thread = t, .address = address}) &&
			    ask_want(wants, address, sizeof(uint64_t), ASK_PASSING));
}

/* Its map, and a field of it. */
static bool check_field(struct v8 *v8, struct v8_thread *t, uint64_t object, uint64_t field, struct ask *wants)
{
	return add_check(v8, t, object - 1, wants) && add_check(v8, t, object - 1 + field, wants);
}

/* Functions may be compiled meanwhile, but what names them stays, unless they have moved. */
static bool check_calls(struct v8 *v8, struct v8_thread *t, const struct v8_calls *calls, struct ask *wants)
{
	const uint64_t *facts = v8->layout.facts;
	bool ok = true;

	for (size_t i = 0; ok && i < calls->len; i++)
		ok = check_field(v8, t, calls->data[i].shared, facts[V8_SHARED_NAME], wants) &&
		     check_field(v8, t, calls->data[i].shared, facts[V8_SHARED_SCRIPT], wants);
	return ok;
}

/* Compiled code may be freed meanwhile, and other code have its place. */
static bool check_code(struct v8 *v8, struct v8_thread *t, const struct heap *heap, uint64_t pc, struct ask *wants)
{
	struct v8_code code;

	return !pc || !v8_code_find(heap, pc, &code) ||
	       (add_check(v8, t, code.stream - 1, wants) &&
		check_field(v8, t, code.object, code.tables->code_data, wants));
}

static bool check_place(struct v8 *v8, struct v8_thread *t, const struct v8_place *place, struct ask *wants)
{
	const struct heap heap = {.layout = &v8->layout, .pages = &v8->ran};
	struct v8_calls calls;

	if (!v8_place_calls(&heap, place, &calls))
		return true;
	if (calls.is_left) /* what was inlined is not known any more: test_recursion in tests/e2e/test_node.py */
		t->flags |= THREAD_UNSURE;
	return check_field(v8, t, place->function, v8->layout.facts[V8_FUNCTION_SHARED], wants) &&
	       check_calls(v8, t, &calls, wants) && check_code(v8, t, &heap, place->pc, wants);
}

static bool begin_checks(struct v8 *v8, struct ask *wants)
{
	bool ok = true;

	v8->is_checking = true;
	for (size_t i = 0; ok && i < v8->threads.len; i++) {
		struct v8_thread *t = v8->threads.data[i];

		for (size_t k = 0; ok && t->flags & THREAD_RAN && k < t->places.len; k++)
			if (v8_place_is_function(&t->places.data[k]))
				ok = check_place(v8, t, &t->places.data[k], wants);
	}
	return ok;
}

static void finish_checks(struct v8 *v8, const struct ask *answers)
{
	for (size_t i = 0; i < v8->checks.len; i++) {
		const struct check *check = &v8->checks.data[i];
		uint64_t before;

		if (i >= answers->len || answers->data[i].got != sizeof(before) ||
		    !pages_read(&v8->ran, check->address, &before, sizeof(before)) ||
		    memcmp(&before, answers->data[i].data, sizeof(before)) != 0)
			check->thread->flags |= THREAD_UNSURE;
	}
	v8->checks.len = 0;
}

/* What a saved snapshot needs to tell the same. */
static bool keep_facts(struct v8 *v8)
{
	struct snapshot *snap = v8->target->snap;
	struct snap_runtime *runtime = snapshot_find_runtime(snap, name);
	uint32_t n = V8_FACT_COUNT;
	uint64_t *facts = arena_alloc(snap->arena, (V8_FACT_COUNT + v8->threads.len * THREAD_FACTS + 1) * sizeof(*facts));

	if (!facts || !runtime)
		return false;
	memcpy(facts, v8->layout.facts, sizeof(v8->layout.facts));
	for (size_t i = 0; i < v8->threads.len; i++) {
		facts[n++] = (uint64_t)v8->threads.data[i]->tid;
		facts[n++] = v8->threads.data[i]->flags;
	}
	facts[n++] = v8->threads.len; /* comes last: it tells where they begin, and so how many facts whoever saved them knew */
	runtime->facts = facts;
	runtime->nfacts = n;
	return true;
}

/* For the threads that ran. */
static bool ask_ran(void *state, const struct snapshot *snap, const struct snap_thread *thread, const struct ask *answers,
		    struct ask *wants)
{
	struct v8 *v8 = state;

	if (v8->is_checking) {
		finish_checks(v8, answers);
		return keep_facts(v8);
	}
	if (!pages_take(&v8->ran, answers))
		return false;
	limit(v8, &v8->ran);
	for (size_t i = 0; i < v8->threads.len; i++)
		if (v8->threads.data[i]->flags & THREAD_RAN)
			know_places(v8, v8->threads.data[i], &v8->ran);
	if (!want_pieces(v8, &v8->ran, wants))
		return false;
	if (!wants->len && !begin_checks(v8, wants))
		return false;
	return wants->len || keep_facts(v8);
}

static const struct asker names_asker = {.max_rounds = 2 * ROUNDS, .ask = ask_ran};

/* Telling */

/* False when memory is exhausted. */
static bool tell_place(struct v8 *v8, const struct heap *heap, const struct v8_place *place, struct raw_stack *raw,
		       size_t *failed)
{
	struct v8_named found;
	bool ok = true;

	switch (v8_name_place(&v8->named, heap, place, &found)) {
	case V8_NAMED:
		for (size_t i = 0; ok && i < found.len; i++)
			ok = vec_push(&raw->runtime, (struct runtime_frame){.code = found.data[i],
									    .raw = place->raw,
									    .runtime = FRAME_KIND_JS});
		return ok;
	case V8_NOT_NAMED:
		(*failed)++;
		return true;
	default:
		return false;
	}
}

static bool tell_places(struct v8 *v8, const struct v8_places *places, struct pages *pages, struct raw_stack *raw,
			size_t *failed)
{
	const struct heap heap = {.layout = &v8->layout, .pages = pages};
	bool ok = true;

	for (size_t i = 0; ok && i < places->len; i++)
		ok = tell_place(v8, &heap, &places->data[i], raw, failed);
	return ok;
}

static const char *problem_of(const struct v8_thread *t, const struct snap_thread *thread, size_t failed)
{
	if (thread->capture == CAPTURE_MOVED)
		return "it ran while it was read";
	if (t->flags & THREAD_UNSURE || (t->flags & THREAD_RAN && failed))
		return "it ran, and its objects moved before they could be read";
	return failed ? "not all of its functions could be read" : NULL;
}

static bool set_problem(struct v8 *v8, pid_t tid, const char *problem)
{
	bool created;
	uint64_t *slot = u64map_put(&v8->problems, (uint64_t)tid, &created);

	if (slot)
		*slot = (uintptr_t)problem;
	return slot;
}

static bool frames(void *state, const struct snapshot *snap, const struct snap_thread *thread, struct raw_stack *raw)
{
	struct v8 *v8 = state;
	struct v8_thread *t = find_thread(v8, thread->tid);
	const struct v8_process process = process_of(v8, snap);
	size_t before = raw->runtime.len;
	struct v8_places places = {0};
	struct snapshot_mem mem;
	size_t failed = 0;
	const char *problem;
	bool ok;

	if (!t)
		return true;
	snapshot_mem_init(&mem, snap, thread);
	ok = v8_places_find(&process, &mem.mem, raw, &places) &&
	     tell_places(v8, &places, t->flags & THREAD_RAN ? &v8->ran : &t->pages, raw, &failed);
	vec_deinit(&places);
	problem = problem_of(t, thread, failed);
	if (!problem || !ok)
		return ok;
	if (t->flags & THREAD_RAN || thread->capture == CAPTURE_MOVED)
		raw->runtime.len = before; /* all or nothing */
	return set_problem(v8, thread->tid, problem);
}

static void tell_thread(void *state, const struct snapshot *snap, const struct snap_thread *thread, struct thread_runtime *out)
{
	struct v8 *v8 = state;
	const uint64_t *problem = u64map_find(&v8->problems, (uint64_t)thread->tid);

	if (!find_thread(v8, thread->tid))
		return;
	out->runtime = name;
	out->problem = problem ? (const char *)(uintptr_t)*problem : NULL;
}

static const char *native_name(const struct stack *stack, uint32_t raw)
{
	for (size_t i = 0; i < stack->len; i++)
		if (stack->data[i].raw == raw && !stack->data[i].inlined)
			return stack->data[i].symbol;
	return NULL;
}

/* A builtin has a name in files that were not stripped, which says more than what kind of frame it has. */
static const char *name_stub(const struct frame *stub, const char *native)
{
	static const char prefix[] = "Builtins_";

	if (!native)
		return stub->symbol;
	return strncmp(native, prefix, strlen(prefix)) == 0 ? native + strlen(prefix) : NULL;
}

/* Which are shown for a frame, which BPF may have told; none: it could not be named. */
static void find_named(const struct v8 *v8, const struct raw_stack *raw, const struct runtime_frame *from, struct v8_named *out)
{
	out->len = 0;
	if (from->place)
		v8_wait_frames_find(&v8->waits, raw, from, out);
	else if (from->code < v8->named.frames.len)
		out->data[out->len++] = (uint32_t)from->code;
}

/* What is shown for one native frame, the innermost first. */
struct shown {
	struct frame data[TRANSLATION_FRAMES];
	size_t len;
};

static void show(const struct raw_stack *raw, const struct stack *stack, const struct runtime_frame *from,
		 const struct frame *named, struct shown *out)
{
	struct frame frame = *named;

	frame.address = raw->data[from->raw].pc;
	frame.flags = raw->data[from->raw].flags;
	if (frame.kind == FRAME_KIND_STUB)
		frame.symbol = name_stub(&frame, native_name(stack, from->raw));
	if (frame.symbol && out->len < TRANSLATION_FRAMES)
		out->data[out->len++] = frame;
}

static bool merge(void *state, const struct raw_stack *raw, bool keep, struct stack *stack)
{
	const struct v8 *v8 = state;
	struct stack_merge merge = stack_merge_begin(stack, keep);

	for (size_t i = 0, next; v8 && i < raw->runtime.len; i = next) {
		uint32_t place = raw->runtime.data[i].raw;
		struct shown shown = {.len = 0};

		for (next = i; next < raw->runtime.len && raw->runtime.data[next].raw == place; next++) {
			const struct runtime_frame *from = &raw->runtime.data[next];
			struct v8_named named = {.len = 0};

			if (from->runtime == FRAME_KIND_JS && place < raw->len)
				find_named(v8, raw, from, &named);
			for (size_t k = 0; k < named.len; k++)
				show(raw, stack, from, &v8->named.frames.data[named.data[k]], &shown);
		}
		stack_merge_replace(&merge, place, place, shown.data, shown.len);
	}
	return stack_merge_end(&merge);
}

/* For waits over time, by the names that its file is known to have: every process is looked at. */
static bool is_likely(const struct maps *maps, struct mem *mem)
{
	static const char *const starts[] = {"node", "libnode", "electron"};

	for (size_t i = 0; i < maps->len; i++) {
		const struct map_entry *entry = &maps->data[i];
		const char *slash = strrchr(entry->path, '/');

		for (size_t k = 0; slash && entry->perms & MAP_PERM_EXEC && k < sizeof(starts) / sizeof(starts[0]); k++)
			if (strncmp(slash + 1, starts[k], strlen(starts[k])) == 0)
				return true;
	}
	return false;
}

static bool describe(void *state, struct offcpu_runtime *out)
{
	const struct v8 *v8 = state;

	return v8_wait_frames_describe(&v8->layout, &v8->target->snap->maps, &out->v8);
}

static void learn(void *state, const struct raw_stack *raw)
{
	struct v8 *v8 = state;

	v8_wait_frames_learn(&v8->waits, &v8->target->memory.mem, raw);
}

/* V8 makes room for code piece by piece. */
static void look_anew(void *state, const struct maps *maps)
{
	struct v8 *v8 = state;

	v8->maps = maps;
}

/* What a sleeping thread's frames refer to stays where it is as long as it sleeps: it is named at once. */
static bool sleeping(void *state, pid_t tid, struct mem *mem, struct raw_stack *raw)
{
	struct v8 *v8 = state;
	const struct v8_process process = process_of(v8, v8->target->snap);
	struct v8_places places = {0};
	size_t failed = 0;
	bool ok;

	pages_read_live(&v8->ran, mem, MAX_THREAD);
	ok = v8_places_find(&process, mem, raw, &places) && tell_places(v8, &places, &v8->ran, raw, &failed);
	vec_deinit(&places);
	return ok;
}

const struct runtime_ops v8_runtime = {
	.name = name,
	.is_likely = is_likely,
	.detect = detect,
	.destroy = destroy,
	.stepper = &stepper_ops,
	.asker = &thread_asker,
	.names = &names_asker,
	.frames = frames,
	.thread = tell_thread,
	.describe = describe,
	.learn = learn,
	.look = look_anew,
	.sleeping = sleeping,
	.merge = merge,
};
