/* SPDX-License-Identifier: MIT */
#include "offcpu/sample/looker.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "privilege/remedy.h"
#include "proc/task.h"

enum { MAX_KERNEL_FRAMES = 127 };

/* A thread, as the last look saw it. */
struct task {
	pid_t tid;
	bool waiting; /* it was asleep */
	bool proved;  /* asleep at two looks: it is a wait, and its stacks were taken */
	char state;
	char name[17];
	uint64_t count; /* how often it got a CPU, or left one */
	uint64_t since_ns;
	struct offcpu_stack_id stack; /* where it waits */
};

struct tasks {
	VEC_FIELDS(struct task); /* by rising tid */
};

struct watched_process {
	struct process process;
	bool kernel_thread;
	uint64_t start_ns; /* tells it from other processes with the same pid; 0: not known */
	struct tasks tasks;
	struct sleeping_process known;
};

struct looker {
	struct looker_options options;
	struct waits *waits;
	struct sleeping *sleeping;
	struct arena *arena;	     /* holds kernel frames, and reasons for missing ones */
	struct tid_list tids;	     /* of the process being looked at */
	struct sleeping_stack stack; /* of the thread being looked at */
	atomic_ullong seen;
	atomic_ullong once;
	atomic_ullong lost;
};

DEFINE_CLEANUP(looker, struct looker *, looker_destroy)

struct looker *looker_create(const struct looker_options *options, struct waits *waits, struct sleeping *sleeping)
{
	_cleanup_(cleanup_looker) struct looker *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->options = *options;
	l->waits = waits;
	l->sleeping = sleeping;
	l->arena = arena_create();
	return l->arena ? steal_ptr(l) : NULL;
}

void looker_destroy(struct looker *l)
{
	if (!l)
		return;
	vec_deinit(&l->tids);
	sleeping_stack_deinit(&l->stack);
	arena_destroy(l->arena);
	free(l);
}

struct looker_counts looker_counts(const struct looker *l)
{
	return (struct looker_counts){
		.waits = atomic_load(&l->seen), .once = atomic_load(&l->once), .lost = atomic_load(&l->lost)};
}

int watched_process_open(pid_t pid, struct err *err, struct watched_process **out)
{
	struct watched_process *watched = calloc(1, sizeof(*watched));
	struct process_info info;
	int rc = watched ? process_open(pid, err, &watched->process) : err_set(err, ENOMEM, "out of memory");

	if (rc < 0) {
		free(watched);
		return rc;
	}
	if (process_info(&watched->process, &info) == 0) {
		watched->kernel_thread = info.kernel_thread;
		watched->start_ns = info.start_time * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
	}
	*out = watched;
	return 0;
}

void watched_process_close(struct looker *l, struct watched_process *watched)
{
	if (!watched)
		return;
	sleeping_forget(l->sleeping, &watched->known);
	process_close(&watched->process);
	vec_deinit(&watched->tasks);
	free(watched);
}

static bool add_wait(struct looker *l, const struct watched_process *watched, const struct task *task,
		     uint64_t duration, bool unfinished)
{
	struct offcpu_wait wait = {
		.kind = OFFCPU_WAIT,
		.flags = unfinished ? OFFCPU_UNFINISHED : 0,
		.key = {.stack = task->stack,
			.tgid = (uint32_t)watched->process.pid,
			.tid = (uint32_t)task->tid,
			.state = (uint32_t)task->state,
			.process_start_ns = watched->start_ns,
			.thread_start_ns = watched->start_ns}, /* a thread's own is not read */
		.start_ns = task->since_ns,
		.duration_ns = duration,
	};

	memcpy(wait.comm, task->name, sizeof(wait.comm));
	return waits_add_wait(l->waits, &wait, sizeof(wait));
}

/* `unfinished`: it is the recording that ends, not the wait. */
static void end_wait(struct looker *l, const struct watched_process *watched, struct task *task, uint64_t now,
		     bool unfinished)
{
	uint64_t duration = now - task->since_ns;

	if (!task->waiting)
		return;
	task->waiting = false;
	if (!task->proved) {
		atomic_fetch_add(&l->once, 1);
		return;
	}
	if (duration < l->options.filter.min_ns || duration > l->options.filter.max_ns)
		return;
	atomic_fetch_add(&l->seen, 1);
	if (!add_wait(l, watched, task, duration, unfinished))
		atomic_fetch_add(&l->lost, 1);
}

static bool is_wanted(const struct looker *l, char state)
{
	return (state == 'S' && l->options.filter.sleeping) || (state == 'D' && l->options.filter.uninterruptible);
}

enum seen {
	SEEN_ENDED,
	SEEN_STILL, /* asleep, and has not run since the last look */
	SEEN_ANEW,
};

/*
 * An unchanged count of how often the thread got a CPU proves that it got none since; a kernel that does not count says
 * 0. Context switches are counted when a thread leaves the CPU: they prove it only together with its present state.
 */
static enum seen glance(const struct watched_process *watched, const struct task *task, struct task_status *status,
			uint64_t *count)
{
	bool counted = task_runs(&watched->process, task->tid, count, NULL) == 0 && *count;

	if (counted && task->waiting && *count == task->count)
		return SEEN_STILL;
	if (task_status(&watched->process, task->tid, status) < 0)
		return SEEN_ENDED;
	if (counted)
		return SEEN_ANEW;
	*count = status->nvcsw + status->nivcsw;
	return task->waiting && *count == task->count && status->state == task->state ? SEEN_STILL : SEEN_ANEW;
}

static const char *kernel_error(struct looker *l, int code)
{
	char help[REMEDY_SIZE];

	if (code == EACCES || code == EPERM)
		return arena_printf(l->arena, "%s: /proc/PID/task/TID/stack takes CAP_SYS_ADMIN: %s", strerrorname_np(code),
				    remedy(REFUSED_KERNEL_STACK, help));
	if (code == ENOENT)
		return "ENOENT: this kernel has no /proc/PID/task/TID/stack";
	return arena_printf(l->arena, "%s: %s", strerrorname_np(code), strerrordesc_np(code));
}

static void take_kernel_stack(struct looker *l, const struct watched_process *watched, pid_t tid, const char **texts,
			      struct stack_sample *out)
{
	int n = task_kernel_stack(&watched->process, tid, l->arena, texts, MAX_KERNEL_FRAMES);

	out->kernel_text = texts;
	out->nkernel = n < 0 ? 0 : (uint32_t)n;
	out->kernel_error_words = n < 0 ? kernel_error(l, -n) : NULL;
}

static struct snap_thread thread_at(pid_t tid, const struct task_syscall *at, const struct arch *arch)
{
	struct snap_thread thread = {.tid = tid, .state = 'S', .status = THREAD_CAPTURED, .capture = CAPTURE_ASLEEP};

	thread.regs.v[arch->user_pc] = at->pc;
	thread.regs.v[arch->user_sp] = at->sp;
	thread.regs.valid = UINT64_C(1) << arch->user_pc | UINT64_C(1) << arch->user_sp;
	thread.syscall.state = at->in_syscall ? SYSCALL_IN : SYSCALL_NONE;
	thread.syscall.nr = at->nr;
	memcpy(thread.syscall.args, at->args, sizeof(at->args));
	return thread;
}

static void take_user_stack(struct looker *l, struct watched_process *watched, pid_t tid, const struct task_syscall *at,
			    int rc, struct stack_sample *out)
{
	struct snap_thread thread;
	struct err err = {0};

	if (rc == -EACCES || rc == -EPERM)
		process_explain_denied(&watched->process, -rc, "its registers cannot be read", &err);
	else if (rc < 0)
		err_set(&err, -rc, "/proc/PID/task/TID/syscall: %s", strerror(-rc));
	if (rc < 0) {
		snprintf(l->stack.error, sizeof(l->stack.error), "%s", err.msg);
		out->user_error = l->stack.error;
		return;
	}
	if (!at->sp && !at->pc) /* it runs for the kernel (io_uring) and has no user stack */
		return;
	thread = thread_at(tid, at, arch_host());
	sleeping_walk(l->sleeping, &watched->known, &watched->process, &thread, &l->stack);
	out->user = l->stack.frames.data;
	out->places = l->stack.places.data;
	out->nuser = (uint32_t)l->stack.frames.len;
	out->runtime = l->stack.frames.runtime.data;
	out->nruntime = (uint32_t)l->stack.frames.runtime.len;
	out->runtime_process = l->stack.runtime_process;
	out->user_end = OFFCPU_END_COMPLETE; /* unless user_error says otherwise */
	out->user_error = l->stack.error[0] ? l->stack.error : NULL;
}

static uint64_t hash_text(uint64_t seed, const char *text)
{
	return hash_bytes(seed, text, text ? strlen(text) : 0);
}

static uint64_t hash_stack(uint64_t hash, const struct stack_sample *stack)
{
	hash = hash_text(hash_text(hash, stack->kernel_error_words), stack->user_error);
	hash = hash_u64(hash_u64(hash, stack->nkernel), stack->user_end);
	for (uint32_t i = 0; i < stack->nkernel; i++)
		hash = hash_text(hash, stack->kernel_text[i]);
	for (uint32_t i = 0; i < stack->nuser; i++)
		hash = hash_u64(hash_u64(hash_u64(hash, stack->user[i].pc), stack->places[i]), stack->user[i].flags);
	for (uint32_t i = 0; i < stack->nruntime; i++) {
		const struct runtime_frame *frame = &stack->runtime[i];

		hash = hash_u64(hash_u64(hash_u64(hash, frame->code), frame->place), (uint64_t)frame->version << 32 | frame->raw);
	}
	hash = hash_u64(hash, stack->nruntime ? stack->runtime_process : 0);
	return hash;
}

static struct offcpu_stack_id keep_stack(struct looker *l, struct stack_sample *stack)
{
	stack->id.low = hash_stack(HASH_SEED, stack) | 1;
	stack->id.high = hash_stack(~HASH_SEED, stack);
	waits_put_stack(l->waits, stack);
	return stack->id;
}

/*
 * The second look at a wait. False when it is not a wait: a thread that is about to sleep already has the sleeping
 * state, and may think better of it. "syscall" tells; where reading that is refused, the state has to do.
 */
static bool prove(struct looker *l, struct watched_process *watched, struct task *task)
{
	static const char ended[] = "the wait ended while its stacks were taken";
	const char *texts[MAX_KERNEL_FRAMES];
	struct stack_sample stack = {.user_end = OFFCPU_END_NO_USER};
	struct task_syscall at = {0};
	struct task_status status;
	uint64_t count;
	int rc = task_syscall(&watched->process, task->tid, &at);

	if (rc == 0 && at.running)
		return false;
	if (task_status(&watched->process, task->tid, &status) < 0 || status.state != task->state)
		return false;
	memcpy(task->name, status.name, sizeof(task->name));
	if (l->options.kernel_stacks)
		take_kernel_stack(l, watched, task->tid, texts, &stack);
	if (l->options.user_stacks)
		take_user_stack(l, watched, task->tid, &at, rc, &stack);
	/* Only if it slept on does what was read belong together. */
	if (glance(watched, task, &status, &count) != SEEN_STILL) {
		stack.nkernel = stack.nuser = stack.nruntime = 0;
		stack.kernel_error_words = l->options.kernel_stacks ? ended : NULL;
		stack.user_error = l->options.user_stacks ? ended : NULL;
	}
	task->stack = keep_stack(l, &stack);
	task->proved = true;
	return true;
}

/* False when it has ended. */
static bool look_at_task(struct looker *l, struct watched_process *watched, struct task *task)
{
	struct task_status status;
	uint64_t count = 0, now = monotonic_ns();
	enum seen seen = glance(watched, task, &status, &count);

	if (seen == SEEN_STILL && (task->proved || prove(l, watched, task)))
		return true;
	end_wait(l, watched, task, now, false);
	if (seen != SEEN_ANEW)
		return seen == SEEN_STILL;
	if (!is_wanted(l, status.state))
		return !state_is_dead(status.state);
	task->waiting = true;
	task->proved = false;
	task->state = status.state;
	task->count = count;
	task->since_ns = now;
	return true;
}

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Brings the list of a process's threads up to date, and ends the waits of those that are gone. */
static bool merge_tasks(struct looker *l, struct watched_process *watched)
{
	struct tasks old = watched->tasks, fresh = {0};
	uint64_t now = monotonic_ns();
	size_t at = 0;

	if (!vec_reserve(&fresh, l->tids.len))
		return false;
	qsort(l->tids.data, l->tids.len, sizeof(*l->tids.data), compare_tids);
	for (size_t i = 0; i < l->tids.len; i++) {
		pid_t tid = l->tids.data[i];

		if (fresh.len && fresh.data[fresh.len - 1].tid == tid)
			continue;
		for (; at < old.len && old.data[at].tid < tid; at++)
			end_wait(l, watched, &old.data[at], now, false);
		fresh.data[fresh.len++] =
			at < old.len && old.data[at].tid == tid ? old.data[at++] : (struct task){.tid = tid};
	}
	for (; at < old.len; at++)
		end_wait(l, watched, &old.data[at], now, false);
	vec_deinit(&old);
	watched->tasks = fresh;
	return true;
}

bool watched_process_look(struct looker *l, struct watched_process *watched)
{
	bool lives = false;

	if (process_list_tids(&watched->process, &l->tids) < 0 || !l->tids.len)
		return false;
	if (watched->kernel_thread)
		return true;
	if (!merge_tasks(l, watched)) {
		atomic_fetch_add(&l->lost, 1);
		return true;
	}
	for (size_t i = 0; i < watched->tasks.len; i++)
		lives |= look_at_task(l, watched, &watched->tasks.data[i]);
	sleeping_end_look(&watched->known);
	return lives || !process_has_ended(&watched->process); /* threads may have come since they were listed */
}

void watched_process_end(struct looker *l, struct watched_process *watched, bool unfinished)
{
	uint64_t now = monotonic_ns();

	for (size_t i = 0; i < watched->tasks.len; i++) {
		struct task *task = &watched->tasks.data[i];

		if (unfinished && !task->proved) /* too early to know whether it is a wait */
			task->waiting = false;
		end_wait(l, watched, task, now, unfinished);
	}
}
