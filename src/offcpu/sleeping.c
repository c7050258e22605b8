/* SPDX-License-Identifier: MIT */
#include "offcpu/sleeping.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "offcpu/feed/objects.h"
#include "offcpu/place.h"
#include "target/target.h"
#include "unwind/unwind.h"

enum {
	COPY_BYTES = 16 << 10, /* of a stack, read in one piece; the rest is read word by word */
	MAX_FRAMES = 1024,
	WALK_BUDGET = 1 << 20, /* for each walk, on average: some ten times what a deep stack takes */
	MAX_FILES = 4096, /* memory maps that are kept */
	CHECK_NS = 500000000,
};

/* The files of a process, from one exec or dlopen() to the next. */
struct sleeping_files {
	struct target *target;
	bool has_runtimes; /* perhaps, by the names in its map */
	bool used; /* a place refers to one of its modules */
	struct budget budget; /* for walking the process's stacks */
};

struct sleeping {
	bool places;
	struct runtime_processes *runtimes; /* or NULL */
	VEC(struct sleeping_files *) files;
	VEC(struct module *) modules; /* each file once, however many processes have it */
	struct u64map by_key;         /* of a file, to its number + 1 */
	uint8_t copy[COPY_BYTES];
};

struct sleeping *sleeping_create(bool places, struct runtime_processes *runtimes)
{
	struct sleeping *sleeping = calloc(1, sizeof(*sleeping));

	if (!sleeping)
		return NULL;
	sleeping->places = places;
	sleeping->runtimes = runtimes;
	return sleeping;
}

static void destroy_files(struct sleeping_files *files)
{
	target_close(files->target);
	free(files);
}

void sleeping_destroy(struct sleeping *sleeping)
{
	if (!sleeping)
		return;
	for (size_t i = 0; i < sleeping->files.len; i++)
		destroy_files(sleeping->files.data[i]);
	vec_deinit(&sleeping->files);
	vec_deinit(&sleeping->modules);
	u64map_deinit(&sleeping->by_key);
	free(sleeping);
}

void sleeping_end_look(struct sleeping_process *known)
{
	if (known->looking)
		memory_deinit(&known->vm);
	known->looking = false;
}

void sleeping_forget(struct sleeping *sleeping, struct sleeping_process *known)
{
	struct sleeping_files *files = known->files;

	sleeping_end_look(known);
	*known = (struct sleeping_process){0};
	if (!files || files->used)
		return;
	for (size_t i = 0; i < sleeping->files.len; i++)
		if (sleeping->files.data[i] == files) {
			sleeping->files.data[i] = sleeping->files.data[--sleeping->files.len];
			destroy_files(files);
			return;
		}
}

/* Files take a few descriptors each, and most processes run the same programs: so no file is opened twice. */
static int open_files(struct sleeping *sleeping, struct sleeping_process *known, const struct process *process,
		      struct err *err)
{
	struct sleeping_files *files;
	int rc;

	if (sleeping->files.len >= MAX_FILES)
		return err_set(err, ENOSPC, "more than %d memory maps", MAX_FILES);
	files = calloc(1, sizeof(*files));
	if (!files)
		return err_set(err, ENOMEM, "out of memory");
	rc = target_open_process(process, err, &files->target);
	if (rc == 0)
		rc = target_read_map(files->target, err);
	if (rc == 0)
		rc = target_open_files(files->target, NULL, err);
	if (rc == 0 && !vec_push(&sleeping->files, files))
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc < 0) {
		destroy_files(files);
		return rc;
	}
	files->has_runtimes = sleeping->runtimes && runtimes_are_told(&files->target->snap->maps, &files->target->memory.mem);
	target_forget_memory(files->target); /* each look opens it anew */
	sleeping_forget(sleeping, known);
	known->files = files;
	known->generation = process_generation(process);
	known->checked_ns = monotonic_ns();
	return 0;
}

/* Which program it runs, its files and memory: once for all threads of a look. */
static void begin_look(struct sleeping *sleeping, struct sleeping_process *known, const struct process *process)
{
	struct err err = {0};

	if (!known->files || known->generation != process_generation(process))
		open_files(sleeping, known, process, &err);
	known->err = err;
	memory_init(&known->vm, process, false);
	known->vm.maps = known->files ? &known->files->target->snap->maps : NULL;
	known->looking = true;
	known->knows_runtimes = false;
}

/* The next entry with code from *i on, or NULL. */
static const struct map_entry *next_code(const struct maps *maps, size_t *i)
{
	while (*i < maps->len && !(maps->data[*i].perms & MAP_PERM_EXEC))
		++*i;
	return *i < maps->len ? &maps->data[(*i)++] : NULL;
}

static bool has_same_code(const struct maps *a, const struct maps *b)
{
	size_t i = 0, j = 0;

	for (;;) {
		const struct map_entry *x = next_code(a, &i), *y = next_code(b, &j);

		if (!x || !y)
			return !x && !y;
		if (x->start != y->start || x->end != y->end || x->inode != y->inode || x->offset != y->offset ||
		    x->dev_major != y->dev_major || x->dev_minor != y->dev_minor)
			return false;
	}
}

/* True when the process has mapped other code since its files were opened. Asked no more often than necessary. */
static bool has_changed(struct sleeping_process *known, const struct process *process)
{
	struct maps maps = {0};
	struct arena *arena;
	uint64_t now = monotonic_ns();
	bool changed;

	if (now - known->checked_ns < CHECK_NS)
		return false;
	known->checked_ns = now;
	arena = arena_create();
	changed = arena && process_maps(process, arena, NULL, &maps) == 0 &&
		  !has_same_code(&maps, &known->files->target->snap->maps);
	vec_deinit(&maps);
	arena_destroy(arena);
	return changed;
}

struct files_of_sleeping {
	struct sleeping *sleeping;
	struct sleeping_files *files;
};

static uint64_t find_place(void *ctx, uint64_t address)
{
	const struct files_of_sleeping *from = ctx;
	struct sleeping *sleeping = from->sleeping;
	uint64_t vaddr, *slot, key;
	struct module *module = modules_find(from->files->target->modules, address, &vaddr);
	bool created;

	key = module ? objects_key(module) : 0;
	slot = key ? u64map_put(&sleeping->by_key, key, &created) : NULL;
	if (!slot)
		return 0;
	if (!*slot) {
		if (sleeping->modules.len >= PLACE_MAX_NUMBER || !vec_push(&sleeping->modules, module))
			return 0;
		*slot = sleeping->modules.len;
		from->files->used = true;
	}
	return place_make((uint32_t)*slot, vaddr);
}

struct module *sleeping_module(void *ctx, uint64_t place, uint64_t *vaddr)
{
	const struct sleeping *sleeping = ctx;
	uint32_t number = place_split(place, vaddr);

	return number && number <= sleeping->modules.len ? sleeping->modules.data[number - 1] : NULL;
}

static bool add_places(struct sleeping *sleeping, struct sleeping_files *files, struct sleeping_stack *out)
{
	struct files_of_sleeping from = {.sleeping = sleeping, .files = files};

	for (size_t i = 0; i < out->frames.len; i++)
		if (!vec_push(&out->places, place_of_frame(&out->frames.data[i], find_place, &from)))
			return false;
	return true;
}

static void empty(struct sleeping_stack *stack)
{
	stack->frames.len = stack->frames.runtime.len = stack->places.len = 0;
	stack->runtime_process = 0;
	stack->error[0] = '\0';
}

void sleeping_stack_deinit(struct sleeping_stack *stack)
{
	raw_stack_deinit(&stack->frames);
	vec_deinit(&stack->places);
}

/* The process's runtimes, to be given back; *number is 0 when there are none. */
static const struct runtimes *take_runtimes(struct sleeping *sleeping, struct sleeping_process *known, uint32_t *number)
{
	const struct sleeping_files *files = known->files;
	const struct runtimes *runtimes = NULL;

	*number = files->has_runtimes ? runtime_processes_take(sleeping->runtimes, files->target, &runtimes) : 0;
	if (*number && !known->knows_runtimes)
		runtimes_look(runtimes, &files->target->snap->maps);
	known->knows_runtimes |= *number != 0;
	return *number ? runtimes : NULL;
}

/* True when the stack is whole. */
static bool walk_once(struct sleeping *sleeping, struct sleeping_process *known, const struct process *process,
		      const struct snap_thread *sleeper, struct sleeping_stack *out)
{
	struct sleeping_files *files = known->files;
	struct snapshot *snap = files->target->snap;
	struct snap_thread thread = *sleeper;
	uint64_t sp = sleeper->regs.v[snap->arch->user_sp];
	struct memory_job job = {.address = sp, .len = COPY_BYTES, .dst = sleeping->copy};
	struct unwind_options options = {.depth = MAX_FRAMES, .budget = &files->budget};
	const struct runtimes *runtimes;
	struct err err = {0};
	bool ok = true;
	int rc;

	empty(out);
	raw_stack_deinit(&out->frames);
	rc = memory_copy(&known->vm, &job, 1); /* the walk reads the rest itself, or says that it cannot */
	thread.stack = (struct mem_copy){
		.start = sp, .len = job.done, .region_end = sp + job.done, .data = sleeping->copy};
	options.live = &known->vm.mem;
	budget_add(&files->budget, WALK_BUDGET, UNWIND_BUDGET / 16);
	runtimes = take_runtimes(sleeping, known, &out->runtime_process);
	options.steppers = runtimes ? runtimes->steppers.data : NULL;
	options.nsteppers = runtimes ? runtimes->steppers.len : 0;
	unwind_thread(snap, files->target->modules, &thread, &options, &out->frames);
	if (runtimes) {
		ok = runtimes_sleeping(runtimes, thread.tid, &known->vm.mem, &out->frames);
		runtimes_learn(runtimes, &out->frames);
		runtime_processes_give(sleeping->runtimes, out->runtime_process);
	}
	if (out->frames.end != STACK_COMPLETE && (rc == -EPERM || rc == -EACCES))
		process_explain_denied(process, -rc, "its memory cannot be read", &err);
	snprintf(out->error, sizeof(out->error), "%s", err.msg[0] ? err.msg : out->frames.error);
	if (!ok || (sleeping->places && !add_places(sleeping, files, out))) {
		empty(out);
		snprintf(out->error, sizeof(out->error), "out of memory");
	}
	return out->frames.end == STACK_COMPLETE;
}

void sleeping_walk(struct sleeping *sleeping, struct sleeping_process *known, const struct process *process,
		   const struct snap_thread *thread, struct sleeping_stack *out)
{
	empty(out);
	if (!known->looking)
		begin_look(sleeping, known, process);
	if (known->err.code) {
		snprintf(out->error, sizeof(out->error), "%s", known->err.msg);
		return;
	}
	if (walk_once(sleeping, known, process, thread, out) || !has_changed(known, process))
		return;
	if (open_files(sleeping, known, process, NULL) < 0)
		return;
	begin_look(sleeping, known, process);
	walk_once(sleeping, known, process, thread, out);
}

bool sleeping_list_targets(const struct sleeping *sleeping, struct watch_targets *out)
{
	bool ok = true;

	for (size_t i = 0; ok && i < sleeping->files.len; i++)
		ok = vec_push(out, sleeping->files.data[i]->target);
	return ok;
}

void sleeping_keep_names(struct sleeping *sleeping)
{
	for (size_t i = 0; i < sleeping->modules.len; i++)
		module_keep_symbols(sleeping->modules.data[i]);
}
