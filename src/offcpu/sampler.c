/* SPDX-License-Identifier: MIT */
#include "offcpu/sampler.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "arch/arch.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pacer.h"
#include "base/signals.h"
#include "offcpu/samples.h"
#include "offcpu/sleeping.h"
#include "proc/family.h"
#include "proc/task.h"

enum {
	INTERVAL_NS = 10000000,
	SCAN_NS = 100000000, /* how often new processes are searched for */
	SHARE = 20,          /* of one CPU, the part that looking may take: 5 % */
	BEGIN_NS = 100000000, /* what it may take besides, for the first look, which opens files */
	MAX_ROWS = 1 << 18,
	MAX_KERNEL_FRAMES = 127,
};

/* A thread, as the last look saw it. */
struct task {
	pid_t tid;
	bool waiting; /* it was asleep */
	bool proved;  /* at two looks: it is a wait, and its stacks were taken */
	char state;
	char name[17];
	uint64_t count; /* how often it had got a CPU, or left it */
	uint64_t since_ns;
	struct sample_row *row; /* where it waits; NULL: lost */
};

struct tasks {
	VEC_FIELDS(struct task); /* by rising tid */
};

struct watched {
	struct process process;
	bool kernel_thread;
	struct tasks tasks;
	struct sleeping_process known;
};

struct sampler {
	struct sampler_options options;
	struct symbolizer_options naming;
	struct arena *arena; /* of texts and errors */
	struct samples *samples;
	struct sleeping *sleeping;
	VEC(struct watched *) watched; /* by rising pid */
	struct tid_list tids;          /* of the process that is looked at */
	struct sleeping_stack stack;   /* of the thread that is looked at */

	uint64_t started_ns;
	uint64_t ended_ns;
	uint64_t scanned_ns;
	uint64_t looked_ns;
	uint64_t longest_ns; /* between two looks */
	atomic_ullong looks; /* that are over */
	atomic_bool over;    /* and no process was left at the last */
	atomic_ullong waits;
	atomic_ullong once;       /* seen asleep at one look only: shorter than the interval, or so */
	atomic_ullong lost;       /* waits without room */
	atomic_ullong unreadable; /* processes that could not be opened */

	bool running;
	pthread_t looker;
	struct pacer pacer;
};

DEFINE_CLEANUP(sampler, struct sampler *, sampler_destroy)

/* `unfinished`: only the recording ends. */
static void end_wait(struct sampler *s, const struct watched *w, struct task *task, uint64_t now, bool unfinished)
{
	uint64_t duration = now - task->since_ns;

	if (!task->waiting)
		return;
	task->waiting = false;
	if (!task->proved) {
		atomic_fetch_add(&s->once, 1);
		return;
	}
	if (duration < s->options.min_ns || duration > s->options.max_ns)
		return;
	atomic_fetch_add(&s->waits, 1);
	if (!samples_add(s->samples, task->row, w->process.pid, task->tid, task->name, task->state, duration,
			 unfinished))
		atomic_fetch_add(&s->lost, 1);
}

static bool is_wanted(const struct sampler *s, char state)
{
	return (state == 'S' && s->options.sleeping) || (state == 'D' && s->options.uninterruptible);
}

enum seen {
	SEEN_ENDED,
	SEEN_STILL, /* asleep, and has not run since the last look */
	SEEN_ANEW,
};

/*
 * How often a thread got a CPU proves alone that it had none since; a kernel that does not count says 0. Context
 * switches are counted when it leaves the CPU: they prove it together with its state now.
 */
static enum seen glance(const struct watched *w, const struct task *task, struct task_status *status, uint64_t *count)
{
	bool counted = task_runs(&w->process, task->tid, count) == 0 && *count;

	if (counted && task->waiting && *count == task->count)
		return SEEN_STILL;
	if (task_status(&w->process, task->tid, status) < 0)
		return SEEN_ENDED;
	if (counted)
		return SEEN_ANEW;
	*count = status->nvcsw + status->nivcsw;
	return task->waiting && *count == task->count && status->state == task->state ? SEEN_STILL : SEEN_ANEW;
}

static const char *kernel_error(struct sampler *s, int code)
{
	if (code == EACCES || code == EPERM)
		return arena_printf(s->arena, "%s: /proc/PID/task/TID/stack needs root or CAP_SYS_ADMIN",
				    strerrorname_np(code));
	if (code == ENOENT)
		return "ENOENT: this kernel has no /proc/PID/task/TID/stack";
	return arena_printf(s->arena, "%s: %s", strerrorname_np(code), strerrordesc_np(code));
}

static void take_kernel_stack(struct sampler *s, const struct watched *w, const char **texts, struct sample *out)
{
	int n = task_kernel_stack(&w->process, out->tid, s->arena, texts, MAX_KERNEL_FRAMES);

	out->kernel = texts;
	out->nkernel = n < 0 ? 0 : (size_t)n;
	out->kernel_error = n < 0 ? kernel_error(s, -n) : NULL;
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

static void take_user_stack(struct sampler *s, struct watched *w, const struct task_syscall *at, int rc,
			    struct sample *out)
{
	struct snap_thread thread;
	struct err err = {0};

	s->stack.len = 0;
	s->stack.error[0] = '\0';
	if (rc == -EACCES || rc == -EPERM) {
		process_explain_denied(&w->process, -rc, "its registers cannot be read", &err);
		out->user_error = arena_intern(s->arena, err.msg);
		return;
	}
	if (rc < 0) {
		out->user_error = arena_printf(s->arena, "/proc/PID/task/TID/syscall: %s", strerror(-rc));
		return;
	}
	if (!at->sp && !at->pc) /* it runs for the kernel (io_uring): there is none */
		return;
	thread = thread_at(out->tid, at, arch_host());
	sleeping_walk(s->sleeping, &w->known, &w->process, &thread, &s->stack);
	out->user = s->stack.data;
	out->nuser = s->stack.len;
	out->user_error = s->stack.error[0] ? arena_intern(s->arena, s->stack.error) : NULL;
}

/*
 * The second look at a wait. False when it is none: a thread that is about to sleep has its state already, and may
 * think better of it; "syscall" tells, and where that is refused its state does.
 */
static bool prove(struct sampler *s, struct watched *w, struct task *task)
{
	const char *texts[MAX_KERNEL_FRAMES];
	struct sample sample = {.pid = w->process.pid, .tid = task->tid, .state = task->state};
	struct task_syscall at = {0};
	struct task_status status;
	uint64_t count;
	int rc = task_syscall(&w->process, task->tid, &at);

	if (rc == 0 && at.running)
		return false;
	if (task_status(&w->process, task->tid, &status) < 0 || status.state != task->state)
		return false;
	memcpy(task->name, status.name, sizeof(task->name));
	if (s->options.kernel_stacks)
		take_kernel_stack(s, w, texts, &sample);
	if (s->options.user_stacks && !w->kernel_thread)
		take_user_stack(s, w, &at, rc, &sample);
	/* It slept on, so what was read belongs together. */
	if (glance(w, task, &status, &count) != SEEN_STILL) {
		sample.nkernel = sample.nuser = 0;
		sample.kernel_error = s->options.kernel_stacks ? "the wait ended while its stacks were taken" : NULL;
		sample.user_error = s->options.user_stacks ? "the wait ended while its stacks were taken" : NULL;
	}
	task->row = samples_row(s->samples, &sample);
	task->proved = true;
	return true;
}

static void look_at_task(struct sampler *s, struct watched *w, struct task *task)
{
	struct task_status status;
	uint64_t count = 0, now = monotonic_ns();
	enum seen seen = glance(w, task, &status, &count);

	if (seen == SEEN_STILL && (task->proved || prove(s, w, task)))
		return;
	end_wait(s, w, task, now, false);
	if (seen != SEEN_ANEW || !is_wanted(s, status.state))
		return;
	task->waiting = true;
	task->proved = false;
	task->row = NULL;
	task->state = status.state;
	task->count = count;
	task->since_ns = now;
}

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Brings the list of a process's threads up to date: those that are gone have ended their waits. */
static bool merge_tasks(struct sampler *s, struct watched *w)
{
	struct tasks old = w->tasks, fresh = {0};
	uint64_t now = monotonic_ns();
	size_t at = 0;

	if (!vec_reserve(&fresh, s->tids.len))
		return false;
	qsort(s->tids.data, s->tids.len, sizeof(*s->tids.data), compare_tids);
	for (size_t i = 0; i < s->tids.len; i++) {
		pid_t tid = s->tids.data[i];

		if (fresh.len && fresh.data[fresh.len - 1].tid == tid)
			continue;
		for (; at < old.len && old.data[at].tid < tid; at++)
			end_wait(s, w, &old.data[at], now, false);
		fresh.data[fresh.len++] =
			at < old.len && old.data[at].tid == tid ? old.data[at++] : (struct task){.tid = tid};
	}
	for (; at < old.len; at++)
		end_wait(s, w, &old.data[at], now, false);
	vec_deinit(&old);
	w->tasks = fresh;
	return true;
}

static void end_waits(struct sampler *s, struct watched *w, bool unfinished)
{
	uint64_t now = monotonic_ns();

	for (size_t i = 0; i < w->tasks.len; i++)
		end_wait(s, w, &w->tasks.data[i], now, unfinished);
}

/* False when the process has ended. */
static bool look_at_process(struct sampler *s, struct watched *w)
{
	if (process_list_tids(&w->process, &s->tids) < 0 || !s->tids.len)
		return false;
	if (w->kernel_thread && s->options.all_processes)
		return true; /* of all processes, those of the kernel are not meant, as with BPF */
	if (!merge_tasks(s, w)) {
		atomic_fetch_add(&s->lost, 1);
		return true;
	}
	for (size_t i = 0; i < w->tasks.len; i++)
		look_at_task(s, w, &w->tasks.data[i]);
	return true;
}

static void destroy_watched(struct sampler *s, struct watched *w)
{
	sleeping_forget(s->sleeping, &w->known);
	process_close(&w->process);
	vec_deinit(&w->tasks);
	free(w);
}

/* Where the process is in the list, or would be. */
static size_t find_watched(const struct sampler *s, pid_t pid, bool *found)
{
	size_t low = 0, high = s->watched.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->watched.data[mid]->process.pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	*found = low < s->watched.len && s->watched.data[low]->process.pid == pid;
	return low;
}

static int watch(struct sampler *s, pid_t pid, struct err *err)
{
	struct process_info info;
	struct watched *w;
	bool found;
	size_t at = find_watched(s, pid, &found);
	int rc;

	if (found)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w || !vec_push(&s->watched, NULL)) {
		free(w);
		return err_set(err, ENOMEM, "out of memory");
	}
	rc = process_open(pid, err, &w->process);
	if (rc < 0) {
		s->watched.len--;
		free(w);
		return rc;
	}
	w->kernel_thread = process_info(&w->process, &info) == 0 && info.kernel_thread;
	memmove(s->watched.data + at + 1, s->watched.data + at, (s->watched.len - 1 - at) * sizeof(*s->watched.data));
	s->watched.data[at] = w;
	return 0;
}

/* Processes that have come since: all, or the children of those that are watched. */
static void scan(struct sampler *s)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	s->scanned_ns = monotonic_ns();
	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		bool found;
		int rc;

		if (!isdigit((unsigned char)entry->d_name[0]) || pid == getpid())
			continue;
		find_watched(s, pid, &found);
		if (!found && !s->options.all_processes)
			find_watched(s, process_parent(dirfd(proc), entry->d_name), &found);
		else if (found)
			continue;
		else
			found = true;
		rc = found ? watch(s, pid, NULL) : 0;
		if (rc < 0 && rc != -ESRCH)
			atomic_fetch_add(&s->unreadable, 1);
	}
	if (proc)
		closedir(proc);
}

static void look(struct sampler *s)
{
	uint64_t now = monotonic_ns();
	size_t kept = 0;

	if (s->looked_ns && now - s->looked_ns > s->longest_ns)
		s->longest_ns = now - s->looked_ns;
	s->looked_ns = now;
	if ((s->options.all_processes || s->options.children) && now - s->scanned_ns >= SCAN_NS)
		scan(s);
	for (size_t i = 0; i < s->watched.len; i++) {
		struct watched *w = s->watched.data[i];

		if (look_at_process(s, w)) {
			s->watched.data[kept++] = w;
		} else {
			end_waits(s, w, false);
			destroy_watched(s, w);
		}
	}
	s->watched.len = kept;
	atomic_store(&s->over, !kept && !s->options.all_processes);
	atomic_fetch_add(&s->looks, 1);
}

static void *look_on(void *arg)
{
	struct sampler *s = arg;
	uint64_t next, busy, earned;

	do {
		next = monotonic_ns() + INTERVAL_NS;
		look(s);
		busy = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		earned = s->started_ns + (busy > BEGIN_NS ? SHARE * (busy - BEGIN_NS) : 0);
	} while (pacer_rest_until(&s->pacer, next > earned ? next : earned));
	return NULL;
}

/* A few descriptors for each process: with many, more than the usual limit. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int start_looking(struct sampler *s, struct err *err)
{
	sigset_t before;

	signals_block_for_worker(&before);
	s->running = pthread_create(&s->looker, NULL, look_on, s) == 0;
	signals_restore(&before);
	return s->running ? 0 : err_set(err, EAGAIN, "no thread can be made");
}

static struct sampler *create(const struct sampler_options *options)
{
	const struct samples_options samples = {.max_rows = MAX_ROWS};
	_cleanup_(cleanup_sampler) struct sampler *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pacer_init(&s->pacer);
	s->options = *options;
	s->arena = arena_create();
	s->samples = samples_create(&samples);
	s->sleeping = sleeping_create(true);
	s->naming = (struct symbolizer_options){.native = options->names, .kernel_addresses = true};
	s->naming.native.find = sleeping_module;
	s->naming.native.find_ctx = s->sleeping;
	s->options.why = s->arena ? arena_intern(s->arena, options->why) : NULL;
	return s->arena && s->samples && s->sleeping ? steal_ptr(s) : NULL;
}

int sampler_start(const struct sampler_options *options, struct err *err, struct sampler **out)
{
	_cleanup_(cleanup_sampler) struct sampler *s = NULL;
	int rc = 0;

	if (!options->sleeping && !options->uninterruptible)
		return err_set(err, EINVAL, "/proc does not show who is ready but without a CPU: --state R needs BPF");
	s = create(options);
	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	if (options->all_processes || options->children)
		allow_descriptors();
	for (size_t i = 0; rc == 0 && i < options->npids; i++)
		rc = watch(s, options->pids[i], err);
	s->started_ns = monotonic_ns();
	if (rc == 0)
		rc = start_looking(s, err);
	if (rc < 0)
		return rc;
	*out = steal_ptr(s);
	return 0;
}

static void stop_looking(struct sampler *s)
{
	if (!s->running)
		return;
	pacer_end(&s->pacer);
	pthread_join(s->looker, NULL);
	s->running = false;
}

void sampler_destroy(struct sampler *s)
{
	if (!s)
		return;
	stop_looking(s);
	for (size_t i = 0; i < s->watched.len; i++)
		destroy_watched(s, s->watched.data[i]);
	vec_deinit(&s->watched);
	vec_deinit(&s->tids);
	vec_deinit(&s->stack);
	samples_destroy(s->samples);
	sleeping_destroy(s->sleeping);
	arena_destroy(s->arena);
	pacer_deinit(&s->pacer);
	free(s);
}

bool sampler_is_over(const struct sampler *s)
{
	return atomic_load(&s->over);
}

struct sampler_progress sampler_progress(const struct sampler *s)
{
	return (struct sampler_progress){
		.looks = atomic_load(&s->looks),
		.waits = atomic_load(&s->waits),
		.lost = atomic_load(&s->once) + atomic_load(&s->lost),
	};
}

/* One last look, so that what has slept on until now is told from what has not. */
void sampler_stop(struct sampler *s)
{
	if (s->ended_ns)
		return;
	stop_looking(s);
	look(s);
	for (size_t i = 0; i < s->watched.len; i++) {
		struct tasks *tasks = &s->watched.data[i]->tasks;

		for (size_t j = 0; j < tasks->len; j++)
			tasks->data[j].waiting &=
				tasks->data[j].proved; /* nobody knows yet what it would have become */
		end_waits(s, s->watched.data[i], true);
	}
	s->ended_ns = monotonic_ns();
}

static bool add_note(struct offcpu_profile *out, const char *note)
{
	return note && vec_push(&out->notes, note);
}

static bool add_notes(const struct sampler *s, struct offcpu_profile *out)
{
	uint64_t looks = atomic_load(&s->looks);
	double gaps = looks > 1 ? (double)(looks - 1) : 1;

	if (s->options.why &&
	    !add_note(out, arena_printf(s->arena, "without BPF, waits are estimated from /proc: %s", s->options.why)))
		return false;
	if (s->options.wakers && !add_note(out, "/proc does not show who ended a wait: --wakers needs BPF"))
		return false;
	return add_note(
		out,
		arena_printf(s->arena,
			     "times are estimates: threads were looked at every %.1f ms (the longest gap was %.1f "
			     "ms); shorter waits are not seen, nor is time spent ready but without a CPU; waits that "
			     "had begun before or have not ended count as far as they were seen",
			     (double)(s->looked_ns - s->started_ns) / gaps / 1e6, (double)s->longest_ns / 1e6));
}

int sampler_finish(struct sampler *s, struct err *err, struct offcpu_profile *out)
{
	sampler_stop(s);
	const struct offcpu_loss losses[] = {
		{"waits_seen_once", atomic_load(&s->once)},
		{"rows_over_limit", atomic_load(&s->lost)},
		{"processes_unreadable", atomic_load(&s->unreadable)},
	};
	bool ok;

	*out = (struct offcpu_profile){.duration_ns = s->ended_ns - s->started_ns, .method = "proc", .estimate = true,
					.by_process = !s->options.by_thread};
	ok = samples_fill(s->samples, &s->naming, out) && add_notes(s, out);
	for (size_t i = 0; ok && i < sizeof(losses) / sizeof(losses[0]); i++)
		ok = vec_push(&out->losses, losses[i]);
	return ok ? 0 : err_set(err, ENOMEM, "out of memory");
}
