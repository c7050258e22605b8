/* SPDX-License-Identifier: MIT */
#include "offcpu/sample/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pacer.h"
#include "base/signals.h"
#include "offcpu/sample/looker.h"
#include "offcpu/naming.h"
#include "offcpu/programs.h"
#include "offcpu/sleeping.h"
#include "offcpu/waits.h"
#include "offcpu/sample/watch_list.h"

enum {
	INTERVAL_NS = 10000000,
	SHARE = 20,           /* looking may take 1/SHARE of one CPU: 5 % */
	BEGIN_NS = 100000000, /* and this on top, for the first look, which opens files */
	MAX_ROWS = 1 << 20,
	MAX_STACK_BYTES = 64 << 20,
};

struct sampler {
	struct watch watch;
	struct sampler_options options;
	struct arena *arena; /* of notes */
	struct waits *waits;
	struct programs *programs;
	struct runtime_processes *runtimes;
	struct sleeping *sleeping;
	struct looker *looker;
	struct watch_list *watched;
	struct offcpu_naming_options names;
	struct offcpu_naming *naming;

	uint64_t started_ns;
	int64_t start_ns; /* the same in CLOCK_REALTIME */
	uint64_t ended_ns;
	uint64_t looked_ns;
	uint64_t longest_ns; /* between two looks */
	atomic_ullong looks; /* finished looks */
	atomic_bool over;    /* no process was left at the last look */

	bool running;
	pthread_t thread;
	struct pacer pacer;
};

static const struct watch_ops sampler_ops;

static void cleanup_sampler(struct sampler **s)
{
	if (*s)
		watch_destroy(&(*s)->watch);
}

static void look(struct sampler *s)
{
	uint64_t now = monotonic_ns();

	if (s->looked_ns && now - s->looked_ns > s->longest_ns)
		s->longest_ns = now - s->looked_ns;
	s->looked_ns = now;
	watch_list_look(s->watched);
	atomic_store(&s->over, watch_list_is_empty(s->watched) && !s->options.watch.all_processes);
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

/* Each process takes a few descriptors: many processes need more than the usual limit. */
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
	s->running = pthread_create(&s->thread, NULL, look_on, s) == 0;
	signals_restore(&before);
	return s->running ? 0 : err_set(err, EAGAIN, "cannot create a thread");
}

static struct sampler *create(const struct sampler_options *options)
{
	const struct waits_options waits = {.max_rows = MAX_ROWS, .max_stack_bytes = MAX_STACK_BYTES};
	const struct watch_list_options watched = {.all_processes = options->watch.all_processes,
						   .children = options->watch.children};
	const struct looker_options looker = {
		.kernel_stacks = options->watch.kernel_stacks,
		.user_stacks = options->watch.user_stacks,
		.filter = options->watch.filter,
	};
	const struct runtime_processes_options runtimes = {.keep = options->watch.keep_native};
	_cleanup_(cleanup_sampler) struct sampler *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->watch.ops = &sampler_ops;
	pacer_init(&s->pacer);
	s->options = *options;
	s->options.watch.filter.runnable = false; /* it cannot be seen */
	s->arena = arena_create();
	s->waits = waits_create(NULL, &waits);
	s->programs = programs_create();
	s->runtimes = runtime_processes_create(NULL, &runtimes);
	s->sleeping = sleeping_create(true, options->watch.runtimes ? s->runtimes : NULL);
	s->looker = looker_create(&looker, s->waits, s->sleeping);
	s->watched = watch_list_create(s->looker, &watched);
	s->names.native = options->watch.names;
	s->names.native.find = sleeping_module;
	s->names.native.find_ctx = s->sleeping;
	s->names.merge = runtime_processes_merge;
	s->names.thread_name = runtime_processes_thread_name;
	s->names.merge_arg = s->runtimes;
	s->naming = offcpu_naming_create(&s->names);
	s->options.why = s->arena ? arena_intern(s->arena, options->why) : NULL;
	return s->arena && s->waits && s->programs && s->runtimes && s->sleeping && s->looker && s->watched && s->naming ? steal_ptr(s) : NULL;
}

int sampler_start(const struct sampler_options *options, struct err *err, struct watch **out)
{
	_cleanup_(cleanup_sampler) struct sampler *s = NULL;
	int rc = 0;

	if (!options->watch.filter.sleeping && !options->watch.filter.uninterruptible)
		return err_set(err, EINVAL,
			       "/proc does not show which threads are ready but without a CPU: --state R needs BPF");
	s = create(options);
	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	if (options->watch.all_processes || options->watch.children)
		allow_descriptors();
	for (size_t i = 0; rc == 0 && i < options->watch.npids; i++)
		rc = watch_list_add(s->watched, options->watch.pids[i], err);
	if (options->watch.all_processes)
		programs_read_all(s->programs);
	s->started_ns = monotonic_ns();
	s->start_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	if (rc == 0)
		rc = start_looking(s, err);
	if (rc < 0)
		return rc;
	*out = &steal_ptr(s)->watch;
	return 0;
}

static void stop_looking(struct sampler *s)
{
	if (!s->running)
		return;
	pacer_end(&s->pacer);
	pthread_join(s->thread, NULL);
	s->running = false;
}

static void sampler_destroy(struct watch *watch)
{
	struct sampler *s = (struct sampler *)watch;

	stop_looking(s);
	watch_list_destroy(s->watched);
	looker_destroy(s->looker);
	waits_destroy(s->waits);
	programs_destroy(s->programs);
	sleeping_destroy(s->sleeping); /* its modules write to the cache, with options that belong to the naming */
	runtime_processes_destroy(s->runtimes);
	offcpu_naming_destroy(s->naming);
	arena_destroy(s->arena);
	pacer_deinit(&s->pacer);
	free(s);
}

static bool sampler_is_over(const struct watch *watch)
{
	return atomic_load(&((const struct sampler *)watch)->over);
}

static struct watch_progress sampler_progress(struct watch *watch)
{
	const struct looker_counts counts = looker_counts(((struct sampler *)watch)->looker);

	return (struct watch_progress){.waits = counts.waits, .lost = counts.once + counts.lost};
}

uint64_t sampler_looks(const struct watch *watch)
{
	return atomic_load(&((const struct sampler *)watch)->looks);
}

/* One last look, to find out which threads have slept until now. */
static void sampler_stop(struct watch *watch)
{
	struct sampler *s = (struct sampler *)watch;

	if (s->ended_ns)
		return;
	stop_looking(s);
	look(s);
	watch_list_end(s->watched);
	s->ended_ns = monotonic_ns();
	programs_read_waiting(s->programs, s->waits);
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
	if (s->options.watch.wakers && !add_note(out, "/proc does not show who ended a wait: --wakers needs BPF"))
		return false;
	return add_note(
		out,
		arena_printf(s->arena,
			     "times are estimates: threads were looked at every %.1f ms (the longest gap was %.1f "
			     "ms); shorter waits are not seen, nor is time spent ready but without a CPU; waits that "
			     "had begun before or have not ended count as far as they were seen",
			     (double)(s->looked_ns - s->started_ns) / gaps / 1e6, (double)s->longest_ns / 1e6));
}

static bool add_losses(const struct sampler *s, struct offcpu_profile *out)
{
	const struct looker_counts counts = looker_counts(s->looker);
	const struct offcpu_loss losses[] = {
		{"waits_seen_once", counts.once},
		{"rows_over_limit", counts.lost},
		{"stacks_over_limit", waits_stacks_lost(s->waits)},
		{"processes_unreadable", watch_list_unreadable(s->watched)},
	};
	bool ok = true;

	for (size_t i = 0; ok && i < sizeof(losses) / sizeof(losses[0]); i++)
		ok = vec_push(&out->losses, losses[i]);
	return ok;
}

static bool sampler_prepare(struct watch *watch, struct watch_targets *out)
{
	struct sampler *s = (struct sampler *)watch;

	sampler_stop(watch);
	runtime_processes_name_threads(s->runtimes);
	return offcpu_naming_ask_kernel(s->naming, s->waits) && sleeping_list_targets(s->sleeping, out);
}

static void sampler_keep_names(struct watch *watch)
{
	sleeping_keep_names(((struct sampler *)watch)->sleeping);
}

static void sampler_forgo_names(struct watch *watch)
{
	offcpu_naming_forgo(((struct sampler *)watch)->naming);
}

static int sampler_finish(struct watch *watch, struct err *err, struct offcpu_profile *out)
{
	struct sampler *s = (struct sampler *)watch;
	bool ok;

	sampler_stop(watch);
	runtime_processes_name_threads(s->runtimes);
	*out = (struct offcpu_profile){.start_ns = s->start_ns, .duration_ns = s->ended_ns - s->started_ns,
					.method = "proc", .estimate = true, .filter = s->options.watch.filter,
					.by_process = !s->options.watch.by_thread};
	ok = programs_fill(s->programs, s->waits, out) && offcpu_naming_fill(s->naming, s->waits, out) &&
	     add_losses(s, out) && add_notes(s, out);
	return ok ? 0 : err_set(err, ENOMEM, "out of memory");
}

static const struct watch_ops sampler_ops = {
	.destroy = sampler_destroy,
	.is_over = sampler_is_over,
	.progress = sampler_progress,
	.stop = sampler_stop,
	.prepare = sampler_prepare,
	.keep_names = sampler_keep_names,
	.forgo_names = sampler_forgo_names,
	.finish = sampler_finish,
};
