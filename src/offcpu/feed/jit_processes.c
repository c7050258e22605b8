/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/jit_processes.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "target/jit_images.h"
#include "symbol/jit_names.h"
#include "symbol/module_symbols.h"
#include "target/target.h"

/* Objects that a process announced to debuggers: copies of them, and the map by which they were found. */
struct announcement {
	struct target *target; /* NULL: it announced nothing */
	struct jit_images *images;
};

struct jit_process {
	pid_t tgid;
	uint64_t generation;
	bool kept;

	pthread_mutex_t lock;       /* guards what follows: reading files may take long */
	struct target *target;      /* without the files of its code */
	struct notes notes;
	bool looked; /* we looked we looked for names, since one was asked for */
	struct announcement announcement;
	struct jit_names *names;
};

struct jit_processes {
	pthread_mutex_t lock;          /* guards what follows */
	VEC(struct jit_process *) all; /* by number - 1; NULL: nothing of it is kept */
	size_t held;                   /* how many of them are not NULL */
	struct u64map refused;         /* by pid and generation: processes for which there was no room */
	uint64_t announced_bytes;      /* of all processes */
};

struct jit_processes *jit_processes_create(void)
{
	struct jit_processes *processes = calloc(1, sizeof(*processes));

	if (processes)
		pthread_mutex_init(&processes->lock, NULL);
	return processes;
}

static void destroy_process(struct jit_process *process)
{
	if (!process)
		return;
	jit_names_destroy(process->names);
	jit_images_destroy(process->announcement.images);
	target_close(process->announcement.target);
	target_close(process->target);
	notes_deinit(&process->notes);
	pthread_mutex_destroy(&process->lock);
	free(process);
}

void jit_processes_destroy(struct jit_processes *processes)
{
	if (!processes)
		return;
	for (size_t i = 0; i < processes->all.len; i++)
		destroy_process(processes->all.data[i]);
	vec_deinit(&processes->all);
	u64map_deinit(&processes->refused);
	pthread_mutex_destroy(&processes->lock);
	free(processes);
}

/* Without the files of its code. NULL: it is gone, or executes something else by now. */
static struct target *open_target(pid_t tgid, uint64_t generation)
{
	_cleanup_(cleanup_target) struct target *target = NULL;

	if (target_open(tgid, NULL, &target) < 0 || target->generation != generation ||
	    target_read_map(target, NULL) < 0 || target_check(target, NULL) < 0)
		return NULL;
	return steal_ptr(target);
}

static struct jit_process *create_process(pid_t tgid, uint64_t generation)
{
	struct jit_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->tgid = tgid;
	process->generation = generation;
	pthread_mutex_init(&process->lock, NULL);
	process->target = open_target(tgid, generation);
	if (process->target) {
		target_forget_memory(process->target); /* of descriptors there are not many */
		return process;
	}
	destroy_process(process);
	return NULL;
}

/* With the lock held. The number of the latest process with that pid; 0: there is none. */
static uint32_t find_tgid(const struct jit_processes *processes, pid_t tgid)
{
	size_t i = processes->all.len;

	while (i > 0 && !(processes->all.data[i - 1] && processes->all.data[i - 1]->tgid == tgid))
		i--;
	return (uint32_t)i;
}

/* Takes it out, to be destroyed, unless it is kept: then NULL. */
static struct jit_process *take_out(struct jit_processes *processes, uint32_t number)
{
	struct jit_process *process = number ? processes->all.data[number - 1] : NULL;

	if (!process || process->kept)
		return NULL;
	processes->all.data[number - 1] = NULL;
	processes->held--;
	return process;
}

/* Its number; 0: it has none. An entry from before its last exec is dropped, unless it is kept. */
static uint32_t find_same(struct jit_processes *processes, pid_t tgid, uint64_t generation)
{
	struct jit_process *old = NULL;
	uint32_t number;

	pthread_mutex_lock(&processes->lock);
	number = find_tgid(processes, tgid);
	if (number && processes->all.data[number - 1]->generation != generation) {
		old = take_out(processes, number);
		number = 0;
	}
	pthread_mutex_unlock(&processes->lock);
	destroy_process(old);
	return number;
}

/* With the lock held. */
static void refuse(struct jit_processes *processes, const struct jit_process *process)
{
	bool created;

	u64map_put(&processes->refused, hash_u64(process->generation, (uint64_t)process->tgid), &created);
}

/* The number that it gets; 0: there is no room. */
static uint32_t put(struct jit_processes *processes, struct jit_process *process)
{
	uint32_t number = 0;

	pthread_mutex_lock(&processes->lock);
	if (processes->held >= JIT_PROCESSES_HELD || processes->all.len >= JIT_PROCESSES_MAX) {
		refuse(processes, process);
	} else if (vec_push(&processes->all, process)) {
		processes->held++;
		number = (uint32_t)processes->all.len;
	}
	pthread_mutex_unlock(&processes->lock);
	return number;
}

uint32_t jit_processes_add(struct jit_processes *processes, pid_t tgid, uint64_t generation)
{
	uint32_t number = find_same(processes, tgid, generation);
	struct jit_process *process = number ? NULL : create_process(tgid, generation);

	if (!process)
		return number;
	number = put(processes, process);
	if (!number)
		destroy_process(process);
	return number;
}

uint64_t jit_processes_over_limit(struct jit_processes *processes)
{
	uint64_t n;

	pthread_mutex_lock(&processes->lock);
	n = processes->refused.len;
	pthread_mutex_unlock(&processes->lock);
	return n;
}

static struct jit_process *find_kept(struct jit_processes *processes, uint32_t number)
{
	struct jit_process *process = NULL;

	pthread_mutex_lock(&processes->lock);
	if (number && number <= processes->all.len)
		process = processes->all.data[number - 1];
	if (process && !process->kept)
		process = NULL;
	pthread_mutex_unlock(&processes->lock);
	return process;
}

static bool has_room(struct jit_processes *processes, const struct jit_process *process, uint64_t bytes)
{
	bool ok;

	pthread_mutex_lock(&processes->lock);
	ok = bytes <= JIT_PROCESSES_ANNOUNCED - processes->announced_bytes;
	if (ok)
		processes->announced_bytes += bytes;
	else
		refuse(processes, process);
	pthread_mutex_unlock(&processes->lock);
	return ok;
}

/* Its files say where the list is; they are closed right after, as there may be many. It may exec meanwhile. */
static void read_announcement(struct jit_processes *processes, struct jit_process *process)
{
	_cleanup_(cleanup_target) struct target *target = open_target(process->tgid, process->generation);

	if (!target || target_open_files(target, NULL, NULL) < 0)
		return;
	modules_destroy(steal_ptr(target->modules));
	if (target->snap->jit_images.len && target_check(target, NULL) == 0 &&
	    has_room(processes, process, target->snap->asked_bytes)) {
		process->announcement.images = jit_images_create(target->snap, -1, &process->notes);
		target_forget_memory(target);
		process->announcement.target = steal_ptr(target);
	}
}

static bool find_announced(struct jit_process *process, uint64_t address, struct calls *out)
{
	static const struct symbol_options itself; /* the object itself holds all that is known of it */
	struct jit_images *images = process->announcement.images;
	struct module *module = images ? jit_images_find(images, address) : NULL;
	struct module_symbols *symbols = module ? module_symbols(module, &itself) : NULL;

	return symbols && module_symbols_find(symbols, address, out);
}

/*
 * The process may have moved to another root since; its map lists the files with names, and its memory holds the
 * announced objects. But it may be gone.
 */
static void look_again(struct jit_processes *processes, struct jit_process *process)
{
	struct target *target = open_target(process->tgid, process->generation);

	if (!target)
		return;
	target_close(process->target);
	process->target = target;
	read_announcement(processes, process);
}

static void look_once(struct jit_processes *processes, struct jit_process *process)
{
	if (process->looked)
		return;
	process->looked = true;
	look_again(processes, process);
	process->names = jit_names_create(process->target, &process->notes);
}

bool jit_processes_look(struct jit_processes *processes, struct watch_targets *out)
{
	bool ok = true;

	for (uint32_t number = 1; ok && number <= processes->all.len; number++) {
		struct jit_process *process = find_kept(processes, number);

		if (!process)
			continue;
		pthread_mutex_lock(&process->lock);
		look_once(processes, process);
		if (process->target && target_is_live(process->target))
			ok = vec_push(out, process->target);
		pthread_mutex_unlock(&process->lock);
	}
	return ok;
}

static bool find(struct jit_processes *processes, struct jit_process *process, uint64_t address, struct calls *out)
{
	bool found;

	pthread_mutex_lock(&process->lock);
	look_once(processes, process);
	found = find_announced(process, address, out) ||
		(process->names && jit_names_find(process->names, address, out));
	pthread_mutex_unlock(&process->lock);
	return found;
}

uint32_t jit_processes_end(struct jit_processes *processes, pid_t tgid)
{
	struct jit_process *gone;
	uint32_t number;

	pthread_mutex_lock(&processes->lock);
	number = find_tgid(processes, tgid);
	gone = take_out(processes, number);
	pthread_mutex_unlock(&processes->lock);
	destroy_process(gone);
	return gone ? 0 : number;
}

void jit_processes_read_names(struct jit_processes *processes, uint32_t number)
{
	struct calls none = {0};

	jit_processes_find(processes, number, 0, &none);
	vec_deinit(&none);
}

void jit_processes_keep(struct jit_processes *processes, uint32_t number)
{
	pthread_mutex_lock(&processes->lock);
	if (number && number <= processes->all.len && processes->all.data[number - 1])
		processes->all.data[number - 1]->kept = true;
	pthread_mutex_unlock(&processes->lock);
}

bool jit_processes_find(struct jit_processes *processes, uint32_t number, uint64_t address, struct calls *out)
{
	struct jit_process *process = find_kept(processes, number);

	return process && find(processes, process, address, out);
}

static void tell_notes(const struct notes *notes, jit_processes_note_fn fn, void *arg)
{
	for (size_t i = 0; i < notes->len; i++)
		fn(arg, notes->data[i]);
}

void jit_processes_notes(struct jit_processes *processes, jit_processes_note_fn fn, void *arg)
{
	for (size_t i = 0; i < processes->all.len; i++) {
		const struct jit_process *process = processes->all.data[i];

		if (!process || !process->looked)
			continue;
		tell_notes(&process->notes, fn, arg);
		if (process->announcement.target)
			tell_notes(&process->announcement.target->snap->notes, fn, arg);
	}
}
