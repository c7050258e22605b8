/* SPDX-License-Identifier: MIT */
#include "offcpu/programs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/chains.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "proc/family.h"
#include "target/process_names.h"

enum {
	AT_ONCE = 512,          /* so many are read together */
	MAX_PROGRAMS = 1 << 14, /* of further processes only the name is known */
};

struct programs {
	struct arena *arena;
	bool lines; /* are read: all processes have answered so far */
	VEC(struct process_program) all; /* what was read later comes last */
};

DEFINE_CLEANUP(programs, struct programs *, programs_destroy)

struct programs *programs_create(void)
{
	_cleanup_(cleanup_programs) struct programs *programs = calloc(1, sizeof(*programs));

	if (!programs)
		return NULL;
	programs->lines = true;
	programs->arena = arena_create();
	return programs->arena ? steal_ptr(programs) : NULL;
}

void programs_destroy(struct programs *programs)
{
	if (!programs)
		return;
	vec_deinit(&programs->all);
	arena_destroy(programs->arena);
	free(programs);
}

void programs_read(struct programs *programs, const pid_t *pids, size_t n)
{
	for (size_t done = 0, some; done < n && programs->all.len < MAX_PROGRAMS; done += some) {
		some = n - done < AT_ONCE ? n - done : AT_ONCE;
		if (!vec_reserve(&programs->all, programs->all.len + some))
			return;
		programs->all.len +=
			process_programs(pids + done, some, programs->arena, &programs->lines,
					 programs->all.data + programs->all.len);
	}
}

void programs_read_all(struct programs *programs)
{
	struct tid_list pids = {0};

	if (process_list_all(&pids) == 0)
		programs_read(programs, pids.data, pids.len);
	vec_deinit(&pids);
}

/* The processes that have waits, each once, with the name of the main thread if that has waits, too. */
static bool list_waiting(const struct waits *waits, struct offcpu_profile *out)
{
	_cleanup_(u64map_deinit) struct u64map numbers = {0};

	for (size_t i = 0; i < waits_nthreads(waits); i++) {
		const struct offcpu_thread *thread = waits_thread(waits, i);
		const uint64_t key = offcpu_process_key(thread->pid, thread->process_start_ns);
		bool created;
		uint64_t *number = u64map_put(&numbers, key, &created);

		if (!number)
			return false;
		if (created &&
		    !vec_push(&out->processes,
			      (struct offcpu_identity){.pid = thread->pid, .start_ns = thread->process_start_ns}))
			return false;
		if (created)
			*number = out->processes.len;
		if (thread->tid == thread->pid)
			out->processes.data[*number - 1].name = thread->name;
	}
	offcpu_profile_sort_processes(out);
	return true;
}

void programs_read_waiting(struct programs *programs, const struct waits *waits)
{
	_cleanup_(offcpu_profile_deinit) struct offcpu_profile profile = {0};
	struct tid_list pids = {0};

	if (list_waiting(waits, &profile))
		for (size_t i = 0; i < profile.processes.len; i++)
			if (!vec_push(&pids, profile.processes.data[i].pid))
				break;
	programs_read(programs, pids.data, pids.len);
	vec_deinit(&pids);
}

/*
 * BPF knows starts by a clock that stands still while the machine is suspended; /proc has whole ticks, by one that does
 * not, and is ahead by what the machine had been suspended for at that time.
 */
static bool is_start(uint64_t read_ns, uint64_t start_ns, uint64_t suspended_ns)
{
	const uint64_t slack = 2 * NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);

	return !start_ns || (read_ns + slack > start_ns && read_ns < start_ns + suspended_ns + slack);
}

static bool is_same_file(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/* What was read last counts, and comes first in `by_pid`. What was read before an exec tells of another program. */
static void describe(const struct programs *programs, const struct chains *by_pid, uint64_t suspended_ns,
		     struct offcpu_identity *process)
{
	for (size_t i = chains_first(by_pid, (uint32_t)process->pid); i; i = chains_next(by_pid, i)) {
		const struct process_program *program = &programs->all.data[i - 1];

		if (program->pid != process->pid || !is_start(program->start_ns, process->start_ns, suspended_ns))
			continue;
		if (process->file && !is_same_file(process->file, program->file))
			continue;
		process->name = process->name ? process->name : program->name;
		process->file = process->file ? process->file : program->file;
		process->script = process->script ? process->script : program->script;
		process->script_word = process->script_word ? process->script_word : program->script_word;
		process->command_line = process->command_line ? process->command_line : program->command_line;
		process->inner_pid = process->inner_pid ? process->inner_pid : program->inner_pid;
		if (!process->container.cgroup)
			process->container = program->container;
	}
}

bool programs_fill(const struct programs *programs, const struct waits *waits, struct offcpu_profile *out)
{
	const uint64_t boot = clock_ns(CLOCK_BOOTTIME), monotonic = clock_ns(CLOCK_MONOTONIC);
	_cleanup_(chains_deinit) struct chains by_pid = {0};

	if (!list_waiting(waits, out))
		return false;
	for (size_t i = 0; i < programs->all.len; i++)
		if (!chains_add(&by_pid, (uint32_t)programs->all.data[i].pid))
			return false;
	for (size_t i = 0; i < out->processes.len; i++)
		describe(programs, &by_pid, boot > monotonic ? boot - monotonic : 0, &out->processes.data[i]);
	return true;
}
