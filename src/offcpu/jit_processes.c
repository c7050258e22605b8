/* SPDX-License-Identifier: MIT */
#include "offcpu/jit_processes.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "symbol/jit_names.h"
#include "symbol/process_files.h"

struct jit_process {
	pid_t tgid;
	uint64_t generation;
	bool kept;

	pthread_mutex_t lock;       /* of what follows: files may take long to read */
	struct process_files files; /* where it lives, without the files of its code */
	struct jit_names *names;    /* NULL: none was asked for */
};

struct jit_processes {
	pthread_mutex_t lock;          /* of what follows */
	VEC(struct jit_process *) all; /* by number - 1; NULL: nothing of it is kept */
	size_t held;                   /* of these */
	struct u64map refused;         /* by number and generation: those for which there was no room */
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

/* The number that it gets; 0: there is no room. */
static uint32_t put(struct jit_processes *processes, struct jit_process *process)
{
	uint32_t number = 0;
	bool created;

	pthread_mutex_lock(&processes->lock);
	if (processes->held >= JIT_PROCESSES_HELD || processes->all.len >= JIT_PROCESSES_MAX) {
		u64map_put(&processes->refused, hash_u64(process->generation, (uint64_t)process->tgid), &created);
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

/* Where it lives may have changed since, and its map has the files that tell names; but it may be gone. */
static void look_again(struct jit_process *process)
{
	struct process_files files = {0};

	if (process_files_generation(process->tgid) != process->generation ||
	    process_files_open_others(process->tgid, is_known, NULL, NULL, &files) < 0)
		return;
	process_files_close(&process->files);
	process->files = files;
}

static bool find(struct jit_process *process, uint64_t address, struct calls *out)
{
	bool found;

	pthread_mutex_lock(&process->lock);
	if (!process->names) {
		look_again(process);
		process->names = jit_names_create(process->files.modules);
	}
	found = process->names && jit_names_find(process->names, address, out);
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

	return process && find(process, address, out);
}
