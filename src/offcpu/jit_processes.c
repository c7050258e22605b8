/* SPDX-License-Identifier: MIT */
#include "offcpu/jit_processes.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/vec.h"
#include "symbol/jit_names.h"
#include "symbol/process_files.h"

enum { MAX_HELD = 256 }; /* at a time: each takes a few descriptors, and memory for its map */

struct jit_process {
	pid_t tgid;
	uint64_t generation;
	bool kept;

	pthread_mutex_t lock;       /* of what follows: files may take long to read */
	struct process_files files; /* where it lives, without the files of its code */
	struct jit_names *names;    /* NULL: none was asked for */
};

struct jit_processes {
	pthread_mutex_t lock;          /* one thread changes what follows, others look */
	VEC(struct jit_process *) all; /* by number - 1; NULL: nothing of it is kept */
	size_t held;                   /* of these */
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

/* The last one of that number; 0: there is none. */
static uint32_t find_tgid(const struct jit_processes *processes, pid_t tgid)
{
	size_t i = processes->all.len;

	while (i > 0 && !(processes->all.data[i - 1] && processes->all.data[i - 1]->tgid == tgid))
		i--;
	return (uint32_t)i;
}

/* Takes it out, unless it is kept. */
static void drop(struct jit_processes *processes, uint32_t number)
{
	struct jit_process *process;

	pthread_mutex_lock(&processes->lock);
	process = processes->all.data[number - 1];
	if (process->kept)
		process = NULL;
	else
		processes->all.data[number - 1] = NULL;
	processes->held -= process != NULL;
	pthread_mutex_unlock(&processes->lock);
	destroy_process(process);
}

uint32_t jit_processes_add(struct jit_processes *processes, pid_t tgid, uint64_t generation)
{
	uint32_t number = find_tgid(processes, tgid);
	struct jit_process *process;
	bool ok;

	if (number && processes->all.data[number - 1]->generation == generation)
		return number;
	if (number)
		drop(processes, number);
	process = processes->held < MAX_HELD && processes->all.len < JIT_PROCESSES_MAX
			  ? create_process(tgid, generation)
			  : NULL;
	if (!process)
		return 0;
	pthread_mutex_lock(&processes->lock);
	ok = vec_push(&processes->all, process);
	processes->held += ok;
	pthread_mutex_unlock(&processes->lock);
	if (ok)
		return (uint32_t)processes->all.len;
	destroy_process(process);
	return 0;
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

void jit_processes_end(struct jit_processes *processes, pid_t tgid)
{
	uint32_t number = find_tgid(processes, tgid);
	struct jit_process *process = find_kept(processes, number);
	struct calls none = {0};

	if (process)
		find(process, 0, &none); /* its names are read now: later nobody knows whose the file was */
	else if (number)
		drop(processes, number);
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
