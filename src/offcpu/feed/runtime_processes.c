/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/runtime_processes.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/signals.h"
#include "base/vec.h"

enum {
	MAX_LOOKS = 9, /* at a process that may have a runtime, whose memory is not ready yet: */
	FIRST_NS = 4000000, /* after so long, then twice as long, and so on, */
	LONGEST = 14,       /* so often twice: a minute, for those whose map goes on changing */
	FIRST_NAMES_NS = 100000000, /* threads are asked for their names so long after the process became known, */
	LAST_NAMES = 6,             /* then after twice as long, so often, and so on at that pace */
	MAP_NS = 200000000, /* how old a map may be that tells which memory can be read without waiting for somebody */
};

struct runtime_process {
	pid_t tgid;
	uint32_t id; /* which no other has */
	_Atomic uint64_t generation; /* of its program; 0: not known yet */
	pthread_mutex_t lock; /* guards what follows */
	uint32_t nlooks;
	_Atomic uint64_t again_ns; /* when to look again; 0: never */
	uint64_t not_before_ns;    /* whatever happens */
	bool has_ended;            /* or executes another program: nothing is read of it any more */
	struct target *target; /* NULL: it could not be opened, or has no runtime */
	struct runtimes runtimes;
	char problem[200]; /* why frames of a runtime are not told; "": nothing is wrong */
	struct arena *arena; /* of the map */
	struct maps maps;    /* what it has mapped, */
	uint64_t mapped_ns;  /* at that time */
	uint32_t nnames;           /* how often threads were asked for their names */
	_Atomic uint64_t names_ns; /* when to do it again; 0: never */
};

/* What the program calls a thread. */
struct thread_name {
	const char *name;
	uint64_t at_ns; /* when it was read last */
};

/* To look for the runtimes of a process, to read what the names of a stack need, or to close what it is read through. */
struct job {
	struct runtime_process *process;
	const struct raw_stack *raw; /* or NULL */
	bool is_end;
};

struct jobs {
	VEC_FIELDS(struct job);
};

struct runtime_processes {
	struct offcpu_probe *probe;
	struct runtime_processes_options options;
	bool working;
	bool named; /* the threads, once more */
	pthread_t worker;

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t more;
	bool ending;
	struct jobs jobs;
	uint64_t again_ns; /* when the first process is to be looked at again; 0: none */
	VEC(struct runtime_process *) all; /* a number is an index + 1 */
	struct u64map current;             /* by tgid: the number, or 0 */
	size_t nopen;              /* those with a target that is read */
	uint64_t over_limit;

	pthread_mutex_t names_lock; /* guards what follows */
	struct arena *arena;
	struct u64map names; /* by tgid and tid: struct thread_name */
};

struct runtime_processes *runtime_processes_create(struct offcpu_probe *probe, const struct runtime_processes_options *options)
{
	struct runtime_processes *processes = calloc(1, sizeof(*processes));
	pthread_condattr_t attributes;

	if (!processes)
		return NULL;
	processes->arena = arena_create();
	if (!processes->arena) {
		free(processes);
		return NULL;
	}
	processes->probe = probe;
	processes->options = *options;
	pthread_mutex_init(&processes->lock, NULL);
	pthread_mutex_init(&processes->names_lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&processes->more, &attributes);
	pthread_condattr_destroy(&attributes);
	return processes;
}

void runtime_processes_destroy(struct runtime_processes *processes)
{
	if (!processes)
		return;
	runtime_processes_end(processes);
	for (size_t i = 0; i < processes->all.len; i++) {
		struct runtime_process *p = processes->all.data[i];

		runtimes_deinit(&p->runtimes);
		target_close(p->target);
		vec_deinit(&p->maps);
		arena_destroy(p->arena);
		pthread_mutex_destroy(&p->lock);
		free(p);
	}
	vec_deinit(&processes->all);
	vec_deinit(&processes->jobs);
	u64map_deinit(&processes->current);
	pthread_cond_destroy(&processes->more);
	pthread_mutex_destroy(&processes->lock);
	u64map_deinit(&processes->names);
	arena_destroy(processes->arena);
	pthread_mutex_destroy(&processes->names_lock);
	free(processes);
}

/* The number of the process that has this pid now, whether it is known or new. With the lock held. 0: there is no room. */
static uint32_t take_number(struct runtime_processes *processes, pid_t tgid)
{
	bool created;
	uint64_t *slot = u64map_put(&processes->current, (uint64_t)tgid, &created);
	struct runtime_process *p;

	if (!slot || *slot)
		return slot ? (uint32_t)*slot : 0;
	if (processes->all.len >= RUNTIME_PROCESSES_EVER) {
		processes->over_limit++;
		return 0;
	}
	p = calloc(1, sizeof(*p));
	if (!p || !vec_push(&processes->all, p)) {
		free(p);
		return 0;
	}
	p->tgid = tgid;
	p->id = (uint32_t)processes->all.len;
	pthread_mutex_init(&p->lock, NULL);
	*slot = processes->all.len;
	return (uint32_t)processes->all.len;
}

/* What BPF needs of all of them. False: nothing. */
static bool describe(const struct runtimes *runtimes, struct offcpu_runtime *out)
{
	bool any = false;

	*out = (struct offcpu_runtime){0};
	for (size_t i = 0; i < runtimes->len; i++) {
		const struct runtime *runtime = &runtimes->data[i];

		if (runtime->state && runtime->ops->describe)
			any |= runtime->ops->describe(runtime->state, out);
	}
	return any;
}

/* Tells BPF, unless it is another program's by now: that may be known only afterwards. */
static void give(struct runtime_processes *processes, const struct runtime_process *p)
{
	struct offcpu_runtime known;

	if (!processes->probe || !describe(&p->runtimes, &known) || target_check(p->target, NULL) < 0)
		return;
	known.hotspot.id = p->id;
	offcpu_probe_set_runtime(processes->probe, p->tgid, &known);
	if (target_check(p->target, NULL) < 0)
		offcpu_probe_set_runtime(processes->probe, p->tgid, NULL);
}

/* The worker is to be awake at that time. */
static void plan_work(struct runtime_processes *processes, uint64_t ns)
{
	pthread_mutex_lock(&processes->lock);
	if (!processes->again_ns || ns < processes->again_ns)
		processes->again_ns = ns;
	pthread_mutex_unlock(&processes->lock);
}

static void plan_names(struct runtime_processes *processes, struct runtime_process *p)
{
	p->names_ns = monotonic_ns() + ((uint64_t)FIRST_NAMES_NS << (p->nnames < LAST_NAMES ? p->nnames : LAST_NAMES));
	plan_work(processes, p->names_ns);
}

static void plan(struct runtime_processes *processes, struct runtime_process *p)
{
	p->not_before_ns = monotonic_ns() + ((uint64_t)FIRST_NS << (p->nlooks < LONGEST ? p->nlooks : LONGEST));
	if (p->nlooks++ >= MAX_LOOKS)
		return;
	p->again_ns = p->not_before_ns;
	plan_work(processes, p->again_ns);
}

/* Counts one more that is read, or one less. False: there are too many. */
static bool count_open(struct runtime_processes *processes, bool more)
{
	bool ok;

	pthread_mutex_lock(&processes->lock);
	ok = !more || processes->nopen < RUNTIME_PROCESSES_MAX;
	processes->over_limit += !ok;
	if (ok)
		processes->nopen += more ? 1 : (size_t)-1;
	pthread_mutex_unlock(&processes->lock);
	return ok;
}

/* What a runtime that cannot be read says of itself. */
static void keep_problem(struct runtime_process *p)
{
	const struct snapshot *snap = p->target->snap;

	for (size_t i = 0; i < snap->runtimes.len; i++) {
		const struct snap_runtime *runtime = &snap->runtimes.data[i];

		if (runtime->problem)
			snprintf(p->problem, sizeof(p->problem), "frames of %s%s%s are not shown: %s", runtime->name,
				 runtime->version ? " " : "", runtime->version ? runtime->version : "", runtime->problem);
	}
}

/* Looks for its runtimes, unless some are known. With the lock of the process held. */
static void look(struct runtime_processes *processes, struct runtime_process *p)
{
	if (p->target || p->has_ended || monotonic_ns() < p->not_before_ns)
		return;
	p->again_ns = 0;
	if (!count_open(processes, true))
		return;
	if (target_open_whole(p->tgid, NULL, NULL, &p->target) == 0) {
		p->generation = p->target->generation;
		p->mapped_ns = monotonic_ns();
		if (runtimes_init(&p->runtimes, p->target) && p->runtimes.len) {
			p->problem[0] = '\0';
			p->runtimes.keep = processes->options.keep;
			p->target->memory.is_old = true;
			give(processes, p);
			plan_names(processes, p);
			return;
		}
		keep_problem(p);
		runtimes_deinit(&p->runtimes);
		p->runtimes = (struct runtimes){0};
		target_close(p->target);
		p->target = NULL;
	}
	count_open(processes, false);
	plan(processes, p);
}

/* Memory that was its own may be a file's by now, which somebody has to deliver. */
static void renew_map(struct runtime_process *p)
{
	struct arena *arena;
	struct maps maps = {0};

	if (!p->target || p->has_ended || monotonic_ns() - p->mapped_ns < MAP_NS)
		return;
	p->mapped_ns = monotonic_ns();
	arena = arena_create();
	if (!arena || process_maps(&p->target->process, arena, NULL, &maps) < 0) {
		vec_deinit(&maps);
		arena_destroy(arena);
		return;
	}
	vec_deinit(&p->maps);
	arena_destroy(p->arena);
	p->arena = arena;
	p->maps = maps;
	p->target->memory.maps = &p->maps;
}

struct code_of {
	struct offcpu_probe *probe;
	uint32_t id;
};

static void give_code(void *arg, uint64_t address, const struct offcpu_stub_rows *rows)
{
	const struct code_of *code = arg;
	const struct offcpu_stub_key key = {.block = address / OFFCPU_STUB_BLOCK, .id = code->id};

	offcpu_probe_set_stubs(code->probe, &key, rows); /* where there is no room for it, stacks end there */
}

static void learn(struct runtime_processes *processes, struct runtime_process *p, const struct raw_stack *raw)
{
	struct code_of code = {.probe = processes->probe, .id = p->id};

	if (!p->target || p->has_ended)
		return;
	renew_map(p);
	runtimes_learn(&p->runtimes, raw);
	if (code.probe)
		runtimes_learn_code(&p->runtimes, raw, give_code, &code);
}

struct names_of {
	struct runtime_processes *processes;
	pid_t tgid;
	uint64_t at_ns;
};

static uint64_t thread_key(pid_t tgid, pid_t tid)
{
	return (uint64_t)tgid << 32 | (uint32_t)tid;
}

/* What does not fit into memory is missing. */
static void keep_name(void *arg, pid_t tid, const char *text)
{
	const struct names_of *names = arg;
	struct runtime_processes *processes = names->processes;
	struct thread_name *kept;
	uint64_t *slot;
	bool created;

	pthread_mutex_lock(&processes->names_lock);
	slot = u64map_put(&processes->names, thread_key(names->tgid, tid), &created);
	kept = slot && created ? arena_alloc(processes->arena, sizeof(*kept)) : slot ? (struct thread_name *)(uintptr_t)*slot : NULL;
	if (kept) {
		*slot = (uintptr_t)kept;
		*kept = (struct thread_name){.name = arena_intern(processes->arena, text), .at_ns = names->at_ns};
	}
	pthread_mutex_unlock(&processes->names_lock);
}

/* With the lock of the process held. */
static void name_threads(struct runtime_processes *processes, struct runtime_process *p)
{
	struct names_of names = {.processes = processes, .tgid = p->tgid, .at_ns = monotonic_ns()};

	p->names_ns = 0;
	if (!p->target || p->has_ended)
		return;
	renew_map(p);
	runtimes_name_threads(&p->runtimes, keep_name, &names);
	p->nnames++;
}

/* All of its stacks that came before have been learnt. Names are kept. */
static void end(struct runtime_processes *processes, struct runtime_process *p)
{
	p->again_ns = p->names_ns = 0;
	if (p->target && !p->has_ended) {
		runtimes_forget(&p->runtimes);
		target_forget_memory(p->target);
		target_forget_files(p->target);
		count_open(processes, false);
	}
	p->has_ended = true;
}

static void do_job(struct runtime_processes *processes, const struct job *job)
{
	pthread_mutex_lock(&job->process->lock);
	if (job->is_end) {
		end(processes, job->process);
	} else {
		look(processes, job->process);
		if (job->raw)
			learn(processes, job->process, job->raw);
		if (job->process->names_ns && job->process->names_ns <= monotonic_ns()) {
			name_threads(processes, job->process);
			plan_names(processes, job->process);
		}
	}
	pthread_mutex_unlock(&job->process->lock);
}

/* Waits for something to do; with the lock held. */
static void wait_for_more(struct runtime_processes *processes)
{
	while (!processes->jobs.len && !processes->ending && (!processes->again_ns || processes->again_ns > monotonic_ns())) {
		struct timespec until = {
			.tv_sec = (time_t)(processes->again_ns / 1000000000),
			.tv_nsec = (long)(processes->again_ns % 1000000000),
		};

		if (processes->again_ns)
			pthread_cond_timedwait(&processes->more, &processes->lock, &until);
		else
			pthread_cond_wait(&processes->more, &processes->lock);
	}
}

/* When there is something to do for it by itself; 0: never. */
static uint64_t next_work(const struct runtime_process *p)
{
	const uint64_t again = p->again_ns, names = p->names_ns;

	return again && (!names || again < names) ? again : names;
}

/* Adds a job for each process that is to be looked at again by now, and finds out when the next one is; with the lock held. */
static void add_due(struct runtime_processes *processes, struct jobs *jobs)
{
	uint64_t now = monotonic_ns();

	if (!processes->again_ns || processes->again_ns > now)
		return;
	processes->again_ns = 0;
	for (size_t i = 0; i < processes->all.len; i++) {
		struct runtime_process *p = processes->all.data[i];
		const uint64_t due = next_work(p);

		if (due && due <= now)
			vec_push(jobs, (struct job){.process = p});
		else if (due && (!processes->again_ns || due < processes->again_ns))
			processes->again_ns = due;
	}
}

static void *work(void *arg)
{
	struct runtime_processes *processes = arg;
	bool ending = false;

	while (!ending) {
		struct jobs jobs;

		pthread_mutex_lock(&processes->lock);
		wait_for_more(processes);
		jobs = processes->jobs;
		processes->jobs = (struct jobs){0};
		ending = processes->ending;
		if (!ending)
			add_due(processes, &jobs);
		pthread_mutex_unlock(&processes->lock);
		for (size_t i = 0; i < jobs.len; i++)
			do_job(processes, &jobs.data[i]);
		vec_deinit(&jobs);
	}
	return NULL;
}

int runtime_processes_start(struct runtime_processes *processes, struct err *err)
{
	sigset_t before;

	signals_block_for_worker(&before);
	processes->working = pthread_create(&processes->worker, NULL, work, processes) == 0;
	signals_restore(&before);
	return processes->working ? 0 : err_set(err, EAGAIN, "cannot create a thread");
}

void runtime_processes_end(struct runtime_processes *processes)
{
	pthread_mutex_lock(&processes->lock);
	processes->ending = true;
	pthread_cond_signal(&processes->more);
	pthread_mutex_unlock(&processes->lock);
	if (processes->working)
		pthread_join(processes->worker, NULL);
	processes->working = false;
}

/* Leaves it to the thread, or does it now if that does not work. */
static void add_job(struct runtime_processes *processes, uint32_t number, const struct raw_stack *raw, bool is_end)
{
	struct job job;
	bool is_left;

	pthread_mutex_lock(&processes->lock);
	job = (struct job){.process = processes->all.data[number - 1], .raw = raw, .is_end = is_end};
	is_left = processes->working && !processes->ending && vec_push(&processes->jobs, job);
	if (is_left)
		pthread_cond_signal(&processes->more);
	pthread_mutex_unlock(&processes->lock);
	if (!is_left)
		do_job(processes, &job);
}

/* Ends what is known of the process with this pid, if it executes another program than this one; 0: in any case. */
static void forget(struct runtime_processes *processes, pid_t tgid, uint64_t generation)
{
	uint32_t number = 0;
	uint64_t *slot;

	pthread_mutex_lock(&processes->lock);
	slot = u64map_find(&processes->current, (uint64_t)tgid);
	if (slot && *slot) {
		const struct runtime_process *p = processes->all.data[*slot - 1];

		if (!generation || (p->generation && p->generation != generation)) {
			number = (uint32_t)*slot;
			*slot = 0;
		}
	}
	pthread_mutex_unlock(&processes->lock);
	if (number)
		add_job(processes, number, NULL, true);
}

void runtime_processes_forget(struct runtime_processes *processes, pid_t tgid)
{
	forget(processes, tgid, 0);
}

/* Nobody may have told that the process executed another program. */
static uint32_t find_number(struct runtime_processes *processes, const struct target *target)
{
	uint32_t number;

	forget(processes, target->process.pid, target->generation);
	pthread_mutex_lock(&processes->lock);
	number = take_number(processes, target->process.pid);
	pthread_mutex_unlock(&processes->lock);
	return number;
}

void runtime_processes_note(struct runtime_processes *processes, struct target *target)
{
	uint32_t number = runtimes_are_told(&target->snap->maps, &target->memory.mem) ? find_number(processes, target) : 0;

	if (number)
		add_job(processes, number, NULL, false);
}

uint32_t runtime_processes_learn(struct runtime_processes *processes, pid_t tgid, const struct raw_stack *raw)
{
	uint32_t number;

	pthread_mutex_lock(&processes->lock);
	number = take_number(processes, tgid);
	pthread_mutex_unlock(&processes->lock);
	if (number)
		add_job(processes, number, raw, false);
	return number;
}

static struct runtime_process *find(struct runtime_processes *processes, uint32_t number)
{
	struct runtime_process *p;

	pthread_mutex_lock(&processes->lock);
	p = processes->all.data[number - 1];
	pthread_mutex_unlock(&processes->lock);
	return p;
}

uint32_t runtime_processes_take(struct runtime_processes *processes, const struct target *target, const struct runtimes **out)
{
	uint32_t number = find_number(processes, target);
	struct runtime_process *p;

	if (!number)
		return 0;
	p = find(processes, number);
	pthread_mutex_lock(&p->lock);
	look(processes, p);
	renew_map(p);
	*out = &p->runtimes;
	if (p->runtimes.len && !p->has_ended)
		return number;
	pthread_mutex_unlock(&p->lock);
	return 0;
}

void runtime_processes_give(struct runtime_processes *processes, uint32_t number)
{
	pthread_mutex_unlock(&find(processes, number)->lock);
}

bool runtime_processes_place(void *arg, uint32_t number, const struct raw_stack *native, struct raw_stack *told)
{
	struct runtime_process *p = number ? find(arg, number) : NULL;
	bool ok;

	if (!p)
		return false;
	pthread_mutex_lock(&p->lock);
	ok = runtimes_place(&p->runtimes, native, told);
	pthread_mutex_unlock(&p->lock);
	return ok;
}

bool runtime_processes_merge(void *arg, uint32_t number, const struct raw_stack *raw, struct stack *stack)
{
	struct runtime_process *p = find(arg, number);
	bool ok;

	pthread_mutex_lock(&p->lock);
	look(arg, p); /* if the thread has not got to it */
	learn(arg, p, raw);
	ok = runtimes_merge(&p->runtimes, raw, stack);
	pthread_mutex_unlock(&p->lock);
	return ok;
}

void runtime_processes_name_threads(struct runtime_processes *processes)
{
	if (processes->named)
		return;
	processes->named = true;
	for (size_t i = 0; i < processes->all.len; i++) {
		struct runtime_process *p = processes->all.data[i];

		pthread_mutex_lock(&p->lock);
		name_threads(processes, p);
		pthread_mutex_unlock(&p->lock);
	}
}

const char *runtime_processes_thread_name(void *arg, pid_t tgid, pid_t tid, uint64_t start_ns)
{
	struct runtime_processes *processes = arg;
	const struct thread_name *name;
	const char *found = NULL;
	const uint64_t *slot;

	pthread_mutex_lock(&processes->names_lock);
	slot = u64map_find(&processes->names, thread_key(tgid, tid));
	name = slot ? (const struct thread_name *)(uintptr_t)*slot : NULL;
	if (name && name->at_ns >= start_ns)
		found = name->name;
	pthread_mutex_unlock(&processes->names_lock);
	return found;
}

void runtime_processes_notes(struct runtime_processes *processes, runtime_processes_note_fn fn, void *arg)
{
	_cleanup_(u64map_deinit) struct u64map read = {0};
	char text[128];
	bool created;

	/* A program that was just executed may be looked at before its start is known, and be another process after it. */
	for (size_t i = processes->all.len; i-- > 0;) {
		const struct runtime_process *p = processes->all.data[i];

		if (p->target)
			u64map_put(&read, (uint64_t)p->tgid, &created);
		else if (p->problem[0] && !u64map_find(&read, (uint64_t)p->tgid))
			fn(arg, p->problem);
	}
	if (!processes->over_limit)
		return;
	snprintf(text, sizeof(text), "frames of runtimes may be missing: there were more than %d processes at a time that have some",
		 RUNTIME_PROCESSES_MAX);
	fn(arg, text);
}
