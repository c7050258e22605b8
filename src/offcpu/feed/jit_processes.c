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
#include "target/process_files.h"

/* What a process announced to debuggers: copies of it, and the map that they were found by. */
struct announced {
	struct snapshot *snap; /* NULL: nothing */
	struct jit_images *images;
};

struct jit_process {
	pid_t tgid;
	uint64_t generation;
	bool kept;

	pthread_mutex_t lock;       /* of what follows: files may take long to read */
	struct process_files files; /* where it lives, without the files of its code */
	bool looked; /* for names, since one was asked for */
	struct announced announced;
	struct jit_names *names;
};

struct jit_processes {
	pthread_mutex_t lock;          /* of what follows */
	VEC(struct jit_process *) all; /* by number - 1; NULL: nothing of it is kept */
	size_t held;                   /* of these */
	struct u64map refused;         /* by number and generation: those for which there was no room */
	uint64_t announced;            /* bytes, by all of them */
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
	jit_images_destroy(process->announced.images);
	snapshot_destroy(process->announced.snap);
	process_files_close(&process->files);
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

/* Files of code are not needed. */
static bool is_known(void *arg, const struct map_entry *entry, uint64_t identity)
{
	return true;
}

static struct jit_process *create_process(pid_t tgid, uint64_t generation)
{
	struct jit_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->tgid = tgid;
	process->generation = generation;
	pthread_mutex_init(&process->lock, NULL);
	if (process_files_open_others(tgid, is_known, NULL, NULL, &process->files) == 0)
		return process;
	destroy_process(process);
	return NULL;
}

/* With the lock. The last one of that number; 0: there is none. */
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

/* Its number; 0: it has none. What it was before it executed something goes, unless it is kept. */
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

/* With the lock. */
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
	ok = bytes <= JIT_PROCESSES_ANNOUNCED - processes->announced;
	if (ok)
		processes->announced += bytes;
	else
		refuse(processes, process);
	pthread_mutex_unlock(&processes->lock);
	return ok;
}

/* Its files are asked where the list is, and closed: there may be many. It may execute something else meanwhile. */
static void read_announced(struct jit_processes *processes, struct jit_process *process)
{
	struct process_files files = {0};

	if (process_files_open(process->tgid, NULL, &files) < 0)
		return;
	modules_destroy(files.modules);
	files.modules = NULL;
	if (files.snap->jit_images.len && process_files_generation(process->tgid) == process->generation &&
	    has_room(processes, process, files.snap->jit_bytes)) {
		process->announced.images = jit_images_create(files.snap, -1);
		process->announced.snap = steal_ptr(files.snap);
	}
	process_files_close(&files);
}

static bool find_announced(struct jit_process *process, uint64_t address, struct calls *out)
{
	static const struct symbol_options itself; /* all that is known of the object is in it */
	struct jit_images *images = process->announced.images;
	struct module *module = images ? jit_images_find(images, address) : NULL;
	struct module_symbols *symbols = module ? module_symbols(module, &itself) : NULL;

	return symbols && module_symbols_find(symbols, address, out);
}

/*
 * Where it lives may have changed since, its map has the files that tell names, and its memory what it announced; but
 * it may be gone.
 */
static void look_again(struct jit_processes *processes, struct jit_process *process)
{
	struct process_files files = {0};

	if (process_files_generation(process->tgid) != process->generation ||
	    process_files_open_others(process->tgid, is_known, NULL, NULL, &files) < 0)
		return;
	process_files_close(&process->files);
	process->files = files;
	read_announced(processes, process);
}

static bool find(struct jit_processes *processes, struct jit_process *process, uint64_t address, struct calls *out)
{
	bool found;

	pthread_mutex_lock(&process->lock);
	if (!process->looked) {
		process->looked = true;
		look_again(processes, process);
		process->names = jit_names_create(process->files.modules);
	}
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

static void tell_notes(const struct snapshot *snap, jit_processes_note_fn fn, void *arg)
{
	for (size_t i = 0; snap && i < snap->notes.len; i++)
		fn(arg, snap->notes.data[i]);
}

void jit_processes_notes(struct jit_processes *processes, jit_processes_note_fn fn, void *arg)
{
	for (size_t i = 0; i < processes->all.len; i++) {
		const struct jit_process *process = processes->all.data[i];

		if (!process || !process->looked)
			continue;
		tell_notes(process->files.snap, fn, arg);
		tell_notes(process->announced.snap, fn, arg);
	}
}
