/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/hotspot.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proc/task.h"
#include "runtime/hotspot/bpf_view.h"
#include "runtime/hotspot/code_cache.h"
#include "runtime/hotspot/frame.h"
#include "runtime/hotspot/locks.h"
#include "runtime/hotspot/names.h"
#include "runtime/hotspot/scopes.h"
#include "runtime/hotspot/stub.h"
#include "runtime/hotspot/threads.h"
#include "runtime/hotspot/top.h"
#include "runtime/hotspot/vmstructs.h"
#include "runtime/hotspot/waits.h"
#include "runtime/replace.h"

static const char name[] = "openjdk";
static const char library[] = "libjvm.so";

enum {
	MAX_BYTES = 128 << 20, /* of the process, for all of its stacks */
	MAX_CODE = 1 << 16,    /* addresses of code that are looked at */
	MAX_CALLS = 16,        /* words on a stack that may be where compiled code has called native code; most are leftovers */
	MAX_PLACES = 1 << 17,
	CODE_ROUNDS = 16,
	LOCK_ROUNDS = 48,
	NAME_ROUNDS = 48,
	LEARN_BYTES = 16 << 20, /* of the process, for one stack of a wait */
	MAX_BLOCKS = 256,       /* of routines' code that BPF is told of, */
	BLOCKS_AHEAD = 4,       /* so many at once: routines are long */
};

static const uint64_t learn_effort = UINT64_C(1) << 34; /* bytes that readers may look at for all waits: half a minute */

/* A thread that stands in code of the virtual machine. */
struct top {
	uint64_t pc;
	uint64_t method; /* if that is the interpreter: perhaps what it executes */
};

struct hotspot {
	struct target *target;
	struct layout layout;
	struct pages pages;
	struct code_cache cache;
	struct arena *arena; /* names */
	struct methods methods;
	struct java_threads threads;
	bool has_threads; /* they were read, and nothing of them is missing any more */
	struct java_heap_state heap; /* before locks were read */

	VEC(struct top) tops; /* where threads stand */
	VEC(uint64_t) calls; /* of native code, which may return there */
	VEC(uint64_t) code; /* addresses of code on the stacks, of which not all is known yet */
	VEC(struct java_place) places; /* that walks came through, of which not all is known yet */
	struct u64map seen;            /* of both, by hash */
	struct java_names names;
	uint64_t effort;               /* for waits over time: what is left of learn_effort */
	struct u64map blocks;          /* of code that BPF was told of, by address */
	size_t nblocks;
	bool collected;
};

/* Detecting */

static void destroy(void *state)
{
	struct hotspot *hs = state;

	if (!hs)
		return;
	pages_deinit(&hs->pages);
	code_cache_deinit(&hs->cache);
	methods_deinit(&hs->methods);
	java_threads_deinit(&hs->threads);
	arena_destroy(hs->arena);
	vec_deinit(&hs->tops);
	vec_deinit(&hs->calls);
	vec_deinit(&hs->code);
	vec_deinit(&hs->places);
	u64map_deinit(&hs->seen);
	java_names_deinit(&hs->names);
	u64map_deinit(&hs->blocks);
	free(hs);
}

static bool is_library(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, library) == 0;
}

static struct module *find_library(struct target *target, uint64_t *bias)
{
	const struct maps *maps = &target->snap->maps;

	for (size_t i = 0; i < maps->len; i++) {
		const struct map_entry *e = &maps->data[i];
		struct module *module;
		uint64_t vaddr;

		if (!(e->perms & MAP_PERM_EXEC) || !e->path || !is_library(e->path))
			continue;
		module = modules_find(target->modules, e->start, &vaddr);
		if (!module)
			continue;
		*bias = e->start - vaddr;
		return module;
	}
	return NULL;
}

/* NULL: there is none, or memory is exhausted. */
static const struct snap_runtime *look(struct target *target)
{
	struct layout layout;
	char version[VMSTRUCTS_VERSION] = "";
	uint64_t bias;
	struct module *module = find_library(target, &bias);
	struct snap_runtime found = {.name = name, .facts = layout.facts};

	if (!module)
		return NULL;
	found.problem = module->image ? vmstructs_read(target, module, bias, &layout, version) : module->info.problem;
	found.version = version[0] ? version : NULL;
	found.nfacts = found.problem ? 0 : HS_FACT_COUNT;
	return snapshot_add_runtime(target->snap, &found);
}

static bool is_likely(const struct maps *maps, struct mem *mem)
{
	for (size_t i = 0; i < maps->len; i++)
		if (maps->data[i].path && is_library(maps->data[i].path))
			return true;
	return false;
}

static struct hotspot *create(struct target *target, const struct snap_runtime *found)
{
	struct hotspot *hs = calloc(1, sizeof(*hs));

	if (!hs)
		return NULL;
	hs->target = target;
	hs->effort = learn_effort;
	layout_load(&hs->layout, found->facts, found->nfacts);
	hs->arena = arena_create();
	pages_init(&hs->pages, MAX_BYTES);
	code_cache_init(&hs->cache, &hs->layout, &hs->pages);
	methods_init(&hs->methods, &hs->layout, &hs->pages, hs->arena);
	java_names_init(&hs->names, &hs->cache, &hs->methods, hs->arena);
	java_threads_init(&hs->threads, &hs->layout, &hs->pages, hs->arena);
	if (hs->arena)
		return hs;
	destroy(hs);
	return NULL;
}

static bool detect(struct target *target, void **state)
{
	const struct snap_runtime *found =
		target_is_live(target) ? look(target) : snapshot_find_runtime(target->snap, name);
	struct hotspot *hs = found && !found->problem ? create(target, found) : NULL;

	if (!hs || layout_problem(&hs->layout) || (!target_is_live(target) && !pages_load(&hs->pages, target->snap, 0))) {
		destroy(hs);
		return false;
	}
	*state = hs;
	return true;
}

/* Code */

static uint64_t hash(uint64_t a, uint64_t b)
{
	return (a * UINT64_C(0x9e3779b97f4a7c15)) ^ b;
}

/* True the first time. */
static bool is_new(struct hotspot *hs, uint64_t a, uint64_t b)
{
	bool created = false;

	if (!u64map_put(&hs->seen, hash(a, b), &created))
		hs->pages.no_memory = true;
	return created;
}

static bool add_code(struct hotspot *hs, uint64_t pc)
{
	return !code_cache_owns(&hs->cache, pc) || hs->code.len >= MAX_CODE || !is_new(hs, pc, 0) || vec_push(&hs->code, pc);
}

static bool collect_copy(struct hotspot *hs, const struct mem_copy *copy)
{
	uint64_t skip = -copy->start % 8;

	for (uint64_t at = skip; at + 8 <= copy->len; at += 8) {
		uint64_t word;

		memcpy(&word, copy->data + at, sizeof(word));
		if (!add_code(hs, le64toh(word)))
			return false;
	}
	return true;
}

static bool add_call(struct hotspot *hs, uint64_t pc, unsigned *left)
{
	if (!*left || !code_cache_owns(&hs->cache, pc))
		return true;
	--*left;
	return !is_new(hs, pc, JAVA_BEHIND_CALL) || vec_push(&hs->calls, pc);
}

/* A thread in native code that Java has called: the innermost frame of Java is near the top. */
static bool collect_calls(struct hotspot *hs, const struct mem_copy *stack)
{
	unsigned left = MAX_CALLS;

	for (uint64_t at = -stack->start % 8; left && at + 8 <= stack->len; at += 8) {
		uint64_t word;

		memcpy(&word, stack->data + at, sizeof(word));
		if (!add_call(hs, le64toh(word), &left))
			return false;
	}
	return true;
}

static bool add_top(struct hotspot *hs, const struct snapshot *snap, const struct snap_thread *t)
{
	struct snapshot_mem mem;
	struct top top = {0};
	struct regs regs;

	if (!arch_to_dwarf(snap->arch, &t->regs, &regs))
		return true;
	if (regs_has(&regs, snap->arch->dwarf_link) &&
	    (!add_code(hs, regs.r[snap->arch->dwarf_link]) || !add_call(hs, regs.r[snap->arch->dwarf_link], &(unsigned){1})))
		return false;
	if (!code_cache_owns(&hs->cache, regs.pc))
		return collect_calls(hs, &t->stack);
	top.pc = regs.pc;
	snapshot_mem_init(&mem, snap, t);
	if (regs_has(&regs, snap->arch->dwarf_fp))
		mem_read_exact(&mem.mem, regs.r[snap->arch->dwarf_fp] + (uint64_t)JAVA_METHOD_SLOT, &top.method, sizeof(top.method));
	return vec_push(&hs->tops, top) && add_code(hs, regs.pc);
}

/* Any word on a stack may be where a call into the code returns to. */
static bool collect_thread(struct hotspot *hs, const struct snapshot *snap, const struct snap_thread *t)
{
	return collect_copy(hs, &t->stack) && collect_copy(hs, &t->interrupted) && add_top(hs, snap, t);
}

static bool collect(struct hotspot *hs, const struct snapshot *snap)
{
	hs->collected = true;
	for (size_t i = 0; i < snap->threads.len; i++)
		if (!collect_thread(hs, snap, &snap->threads.data[i]))
			return false;
	return true;
}

/* Reads as much of the code at an address as a step will; true when nothing of it is missing any more. */
static bool know_code(struct hotspot *hs, uint64_t pc)
{
	const struct blob *blob;
	struct cfi_row row;
	uint64_t slot;

	hs->pages.lacks = false;
	blob = code_cache_find(&hs->cache, pc);
	if (blob && blob->kind == BLOB_COMPILED)
		scopes_is_deoptimized(&hs->cache, blob, pc, &slot);
	else if (blob && stub_is_routine(blob) && pc != hs->layout.facts[HS_CALL_RETURN])
		stub_read_row(&hs->cache, hs->target->snap->arch, blob, pc, false, &row);
	return !hs->pages.lacks;
}

static void know_top(struct hotspot *hs, const struct top *top)
{
	const struct blob *blob = code_cache_find(&hs->cache, top->pc);
	struct cfi_row row;
	uint64_t start, len;

	if (!blob)
		return;
	if (stub_is_routine(blob))
		stub_read_row(&hs->cache, hs->target->snap->arch, blob, top->pc, true, &row);
	else if (blob->kind == BLOB_INTERPRETER)
		methods_find_code(&hs->methods, le64toh(top->method), &start, &len);
	else if (top_window(blob, top->pc, &start, &len))
		pages_foresee(&hs->pages, start, len);
}

/* What follows a call tells how much was saved for it. */
static void know_call(struct hotspot *hs, uint64_t pc)
{
	const struct blob *blob = code_cache_find(&hs->cache, pc);

	if (blob && blob->kind == BLOB_COMPILED)
		pages_foresee(&hs->pages, pc, java_behind_call(blob, pc));
}

static bool ask_code(void *state, const struct snapshot *snap, const struct snap_thread *thread, const struct ask *answers,
		     struct ask *wants)
{
	struct hotspot *hs = state;
	size_t left = 0;

	if (!pages_take(&hs->pages, answers) || (!hs->collected && !collect(hs, snap)))
		return false;
	for (size_t i = 0; i < hs->tops.len; i++)
		know_top(hs, &hs->tops.data[i]);
	for (size_t i = 0; i < hs->calls.len; i++)
		know_call(hs, hs->calls.data[i]);
	for (size_t i = 0; i < hs->code.len; i++)
		if (!know_code(hs, hs->code.data[i]))
			hs->code.data[left++] = hs->code.data[i];
	hs->code.len = left;
	return pages_want(&hs->pages, wants);
}

static const struct asker code_asker = {.max_rounds = CODE_ROUNDS, .ask = ask_code};

/* Walking */

static bool owns(void *state, uint64_t pc)
{
	const struct hotspot *hs = state;

	return code_cache_owns(&hs->cache, pc);
}

/* Which compilation is in a blob now; 0: it is none of a method, or the release does not say. */
static uint32_t version_of(struct hotspot *hs, const struct java_place *place)
{
	const struct blob *blob = code_cache_find(&hs->cache, place->place);
	uint64_t id;

	if (!blob || blob->kind != BLOB_COMPILED || blob->start != place->code || !layout_has(&hs->layout, HS_NM_COMPILE_ID) ||
	    !layout_read(&hs->layout, hs->cache.pages, blob->start, HS_NM_COMPILE_ID, &id))
		return 0;
	return (uint32_t)id;
}

static bool note_place(struct hotspot *hs, struct raw_stack *raw, const struct java_place *place)
{
	struct runtime_frame frame = {
		.code = place->code,
		.place = place->place,
		.version = hs->pages.live ? version_of(hs, place) : 0,
		.raw = (uint32_t)(raw->len - 1),
		.runtime = FRAME_KIND_JAVA,
	};

	if (hs->places.len < MAX_PLACES && is_new(hs, place->code, place->place) && !vec_push(&hs->places, *place))
		return false;
	return vec_push(&raw->runtime, frame);
}

static enum step_result step(void *state, struct walk *w, struct caller *out)
{
	struct hotspot *hs = state;
	struct java_place place;
	enum step_result result = java_step(&hs->cache, &hs->methods, w, out, &place);

	if (place.code && !note_place(hs, w->out, &place)) {
		walk_end(w, STACK_DEPTH_LIMIT, "out of memory after %zu frames", w->out->len);
		return STEP_END;
	}
	return result;
}

static const struct stepper_ops stepper = {.owns = owns, .step = step};

/* Naming */

static bool know_threads(struct hotspot *hs)
{
	bool ok;

	if (hs->has_threads)
		return true;
	hs->pages.lacks = false;
	ok = java_threads_read(&hs->threads);
	hs->has_threads = !hs->pages.lacks;
	return ok;
}

/* Locks */

/* Whether a collector may have moved something meanwhile is known when nothing more is wanted. */
static void note_heap(struct hotspot *hs, const struct snapshot *snap)
{
	const struct java_heap_state now = java_heap_read(&hs->layout, &hs->target->memory.mem);
	struct snap_runtime *found = snapshot_find_runtime(snap, name);

	hs->layout.facts[HS_HEAP_WAS_STILL] = hs->heap.still && now.still && now.collections == hs->heap.collections;
	if (found && found->nfacts > HS_HEAP_WAS_STILL)
		found->facts[HS_HEAP_WAS_STILL] = hs->layout.facts[HS_HEAP_WAS_STILL];
}

static bool ask_locks(void *state, const struct snapshot *snap, const struct snap_thread *thread, const struct ask *answers,
		      struct ask *wants)
{
	struct hotspot *hs = state;

	if (!answers->len)
		hs->heap = java_heap_read(&hs->layout, &hs->target->memory.mem);
	if (!pages_take(&hs->pages, answers) || !know_threads(hs))
		return false;
	java_waits_know(&hs->threads, snap);
	if (!pages_want(&hs->pages, wants))
		return false;
	if (!wants->len)
		note_heap(hs, snap);
	return true;
}

static const struct asker locks_asker = {.max_rounds = LOCK_ROUNDS, .ask = ask_locks};

static void tell_waits(void *state, const struct snapshot *snap, const struct snap_thread *thread, struct runtime_wait *out)
{
	struct hotspot *hs = state;

	if (!know_threads(hs))
		return;
	java_waits_number(&hs->threads, snap);
	java_waits_tell(&hs->threads, snap, thread, out);
}

static bool ask_names(void *state, const struct snapshot *snap, const struct snap_thread *thread, const struct ask *answers,
		      struct ask *wants)
{
	struct hotspot *hs = state;
	size_t left = 0;

	if (!pages_take(&hs->pages, answers))
		return false;
	for (size_t i = 0; i < hs->places.len; i++)
		if (!java_names_know(&hs->names, &hs->places.data[i]))
			hs->places.data[left++] = hs->places.data[i];
	hs->places.len = left;
	return know_threads(hs) && pages_want(&hs->pages, wants);
}

static const struct asker names_asker = {.max_rounds = NAME_ROUNDS, .ask = ask_names};

static void describe_thread(void *state, const struct snapshot *snap, const struct snap_thread *thread,
			    struct thread_runtime *out)
{
	struct hotspot *hs = state;
	const struct java_thread *found;

	if (!know_threads(hs))
		return;
	hs->has_threads = true; /* what is still missing will not come */
	found = java_waits_thread(&hs->threads, snap, thread);
	if (found)
		*out = (struct thread_runtime){
			.runtime = name,
			.name = found->name,
			.state = found->state,
			.has_daemon = found->has_daemon,
			.is_daemon = found->is_daemon,
		};
}

/* By what came of it: which collector is in use, and how it marks references, differs between releases. */
static const char *note(void *state)
{
	const struct hotspot *hs = state;

	return java_threads_lack_objects(&hs->threads) ? "Java's threads have the kernel's names, and neither states nor daemons are "
							 "known: references to their objects cannot be followed, as with generational ZGC"
						       : NULL;
}

static struct java_place place_of(const struct runtime_frame *frame)
{
	return (struct java_place){.code = frame->code, .place = frame->place, .version = frame->version};
}

static bool merge(void *state, const struct raw_stack *raw, bool keep, struct stack *stack)
{
	struct hotspot *hs = state;

	struct stack_merge merge = stack_merge_begin(stack, keep);

	for (size_t i = 0; hs && i < raw->runtime.len; i++) {
		const struct runtime_frame *frame = &raw->runtime.data[i];
		const struct java_place place = place_of(frame);
		struct java_named named;

		if (frame->runtime != FRAME_KIND_JAVA || frame->raw >= raw->len)
			continue;
		java_names_find(&hs->names, &place, &named);
		for (size_t k = 0; k < named.len; k++) {
			named.data[k].flags = raw->data[frame->raw].flags;
			named.data[k].address = raw->data[frame->raw].pc;
		}
		stack_merge_replace(&merge, frame->raw, frame->raw, named.data, named.len);
	}
	return stack_merge_end(&merge) && (!hs || !hs->pages.no_memory);
}

/* Waits over time */

static bool describe(void *state, struct offcpu_runtime *out)
{
	struct hotspot *hs = state;

	layout_let_heaps_grow(&hs->layout);
	return bpf_view_of(&hs->layout, hs->target->snap->arch, &out->hotspot);
}

/* Nothing of what was read before counts: the process runs on, and may have put something else there. */
static void read_anew(struct hotspot *hs)
{
	pages_read_live(&hs->pages, &hs->target->memory.mem, LEARN_BYTES);
	code_cache_deinit(&hs->cache);
	code_cache_init(&hs->cache, &hs->layout, &hs->pages);
	methods_deinit(&hs->methods);
	methods_init(&hs->methods, &hs->layout, &hs->pages, hs->arena);
}

/* Threads that sleep are walked by the stepper, which notes what it comes through. */
static void look_anew(void *state, const struct maps *maps)
{
	struct hotspot *hs = state;

	layout_let_heaps_grow(&hs->layout);
	read_anew(hs);
}

static void forget(void *state)
{
	struct hotspot *hs = state;

	pages_read_live(&hs->pages, NULL, 0);
}

/* Readers may look at so much for a stack, and at all that is left for all stacks; what they have looked at is taken from that. */
static uint64_t begin_effort(struct hotspot *hs)
{
	read_anew(hs);
	if (hs->pages.effort > hs->effort)
		hs->pages.effort = hs->effort;
	return hs->pages.effort;
}

static void end_effort(struct hotspot *hs, uint64_t before)
{
	hs->effort -= before - hs->pages.effort;
}

static void learn(void *state, const struct raw_stack *raw)
{
	struct hotspot *hs = state;
	bool fresh = false;
	uint64_t before = 0;

	for (size_t i = 0; i < raw->runtime.len; i++) {
		const struct runtime_frame *frame = &raw->runtime.data[i];
		const struct java_place place = place_of(frame);
		struct java_named named;

		if (frame->runtime != FRAME_KIND_JAVA || java_names_has(&hs->names, &place))
			continue;
		if (!fresh)
			before = begin_effort(hs);
		fresh = true;
		java_names_find(&hs->names, &place, &named);
	}
	if (fresh)
		end_effort(hs, before);
}

static void tell_routine(struct hotspot *hs, const struct runtime_frame *frame, runtime_code_fn fn, void *arg)
{
	const struct blob *found = code_cache_find(&hs->cache, frame->place);
	uint64_t start = frame->place / OFFCPU_STUB_BLOCK * OFFCPU_STUB_BLOCK;
	struct offcpu_stub_rows rows;
	struct blob blob;

	if (!found || !stub_is_routine(found) || found->start != frame->code)
		return;
	blob = *found;
	for (unsigned i = 0; i < BLOCKS_AHEAD && start < blob.code_end; i++, start += OFFCPU_STUB_BLOCK) {
		bool created = false;

		if (!u64map_put(&hs->blocks, start, &created) || !created)
			continue;
		hs->nblocks++;
		stub_fill_rows(&hs->cache, hs->target->snap->arch, &blob, start, &rows);
		fn(arg, start, &rows);
	}
}

static void learn_routine(struct hotspot *hs, const struct runtime_frame *frame, runtime_code_fn fn, void *arg)
{
	uint64_t before;

	if (u64map_find(&hs->blocks, frame->place / OFFCPU_STUB_BLOCK * OFFCPU_STUB_BLOCK) ||
	    frame->place == hs->layout.facts[HS_CALL_RETURN])
		return;
	before = begin_effort(hs);
	tell_routine(hs, frame, fn, arg);
	end_effort(hs, before);
}

/* Of a routine that a thread was interrupted in, and of one that has called it. */
static void learn_code(void *state, const struct raw_stack *raw, runtime_code_fn fn, void *arg)
{
	struct hotspot *hs = state;

	for (size_t i = 0; i < raw->runtime.len && i < 2 && hs->nblocks < MAX_BLOCKS; i++) {
		const struct runtime_frame *frame = &raw->runtime.data[i];

		if (frame->runtime != FRAME_KIND_JAVA || frame->raw != i || !code_cache_owns(&hs->cache, frame->code) || frame->version)
			return;
		learn_routine(hs, frame, fn, arg);
	}
}

static void name_threads(void *state, runtime_name_fn fn, void *arg)
{
	_cleanup_(task_numbers_deinit) struct task_numbers numbers = {0};
	struct hotspot *hs = state;

	read_anew(hs);
	if (task_numbers_list(&hs->target->process, &numbers) < 0 || !java_threads_read(&hs->threads))
		return;
	for (size_t i = 0; i < hs->threads.list.len; i++) {
		const struct java_thread *thread = &hs->threads.list.data[i];
		const pid_t tid = task_numbers_find(&numbers, thread->own);

		if (tid && thread->name)
			fn(arg, tid, thread->name);
	}
}

const struct runtime_ops hotspot_runtime = {
	.name = name,
	.is_likely = is_likely,
	.detect = detect,
	.destroy = destroy,
	.stepper = &stepper,
	.code = &code_asker,
	.names = &names_asker,
	.thread = describe_thread,
	.locks = &locks_asker,
	.waits = tell_waits,
	.note = note,
	.describe = describe,
	.learn = learn,
	.learn_code = learn_code,
	.name_threads = name_threads,
	.look = look_anew,
	.forget = forget,
	.merge = merge,
};
