/* SPDX-License-Identifier: MIT */
#include "offcpu/record/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/signals.h"
#include "kernel/mmap_watch.h"
#include "offcpu/record/events.h"
#include "offcpu/record/late_places.h"
#include "offcpu/record/notes.h"
#include "offcpu/naming.h"
#include "offcpu/feed/process_reader.h"
#include "offcpu/feed/remaps.h"
#include "offcpu/feed/runtime_processes.h"
#include "offcpu/feed/tables.h"
#include "offcpu/programs.h"
#include "offcpu/record/stack_copies.h"
#include "offcpu/record/unfinished.h"
#include "offcpu/waits.h"
#include "proc/family.h"

enum {
	POLL_MS = 20,
	REMAP_POLL_MS = 1, /* while maps wait to be read until they are quiet */
	RING_BYTES = 8 << 20, /* for new stacks */
	EVENTS_BYTES = 16 << 20,
	MAX_ROWS = 1 << 20,
	MAX_STACK_BYTES = 64 << 20,
	HEAD_START_NS = 40000000, /* of who makes tables: the first waits need some */
};

struct recording {
	struct watch watch;
	struct recording_options options;
	struct offcpu_probe *probe;
	struct tables *tables;
	struct runtime_processes *runtimes;
	struct process_reader *processes;
	struct waits *waits;
	struct programs *programs;
	struct late_places late_places;
	struct stack_copies copies;
	struct offcpu_naming *naming;
	uint64_t started_ns;
	uint64_t ended_ns;
	bool walked; /* what could be walked only at the end */
	int64_t epoch_ns; /* CLOCK_MONOTONIC's zero in CLOCK_REALTIME */
	atomic_bool ending;

	bool reading, mapping;
	pthread_t reader;
	pthread_t mapper;
	struct mmap_watch *mmaps; /* NULL: not permitted; tables then come after the first stack that lacks them */
	struct remaps remaps;

	struct record_events events;
	struct record_notes notes;
	struct offcpu_naming_options names;
};

static const struct watch_ops recording_ops;

static void cleanup_recording(struct recording **r)
{
	if (*r)
		watch_destroy(&(*r)->watch);
}

static void take_wait(struct recording *r, const void *record, size_t len)
{
	const struct wait_row *row = waits_add_wait(r->waits, record, len);

	if (row && r->options.events)
		record_events_add(&r->events, row, record);
}

bool recording_take_events(struct recording *r, offcpu_event_fn take, void *arg)
{
	return record_events_take(&r->events, r->naming, r->epoch_ns, take, arg);
}

static uint32_t what_to_ask(uint32_t kind)
{
	if (kind == OFFCPU_EXIT)
		return REQUEST_FORGET;
	return kind == OFFCPU_NEED_MAPS ? REQUEST_READ | REQUEST_ASKED : REQUEST_READ;
}

static void take_stack(struct recording *r, const void *record, size_t len)
{
	const struct offcpu_stack *head = record;
	struct wait_stack *stack = waits_add_stack(r->waits, record, len);

	if (stack && stack->user.runtime.len)
		stack->runtime_process = runtime_processes_learn(r->runtimes, (pid_t)head->tgid, &stack->user);
}

static void take_record(void *arg, const void *record, size_t len)
{
	const struct offcpu_process *process = record;
	struct recording *r = arg;
	uint32_t kind;

	if (len < sizeof(kind))
		return;
	memcpy(&kind, record, sizeof(kind));
	switch (kind) {
	case OFFCPU_STACK:
		take_stack(r, record, len);
		break;
	case OFFCPU_WAIT:
		take_wait(r, record, len);
		break;
	case OFFCPU_FOUND:
		tables_add_found(r->tables, record, len);
		break;
	case OFFCPU_COPY:
		stack_copies_add(&r->copies, record, len);
		break;
	case OFFCPU_RAN:
		waits_add_ran(r->waits, record, len);
		break;
	case OFFCPU_NEED_MAPS:
	case OFFCPU_EXEC:
	case OFFCPU_EXIT:
		if (len < sizeof(struct offcpu_process))
			break;
		process_reader_ask(r->processes, (pid_t)process->tgid, what_to_ask(kind));
		if (kind != OFFCPU_NEED_MAPS)
			runtime_processes_forget(r->runtimes, (pid_t)process->tgid);
		if (kind != OFFCPU_NEED_MAPS)
			late_places_end_program(&r->late_places, (pid_t)process->tgid, waits_nstacks(r->waits));
		break;
	}
}

static void *read_records(void *arg)
{
	struct recording *r = arg;
	int rc = 0;

	while (rc == 0 && !atomic_load(&r->ending))
		rc = offcpu_probe_poll(r->probe, POLL_MS, take_record, r);
	if (rc < 0) /* the end reads once more */
		record_notes_add_failed_read(&r->notes, "records may be missing, reading them failed", strerror(-rc));
	return NULL;
}

static const char *why_no_maps(void *arg, pid_t tgid)
{
	struct recording *r = arg;

	return process_reader_denied(r->processes, tgid);
}

static void note_remap(void *arg, pid_t tgid)
{
	struct recording *r = arg;

	if (offcpu_probe_is_watched(r->probe, tgid))
		remaps_note(&r->remaps, tgid, monotonic_ns());
}

/* Asks for tables as soon as code is mapped, so that they are there for its first wait. */
static void *watch_mmaps(void *arg)
{
	struct recording *r = arg;
	struct pollfd fd = {.fd = mmap_watch_fd(r->mmaps), .events = POLLIN};
	pid_t tgid;

	while (!atomic_load(&r->ending)) {
		if (poll(&fd, 1, remaps_pending(&r->remaps) ? REMAP_POLL_MS : POLL_MS) > 0)
			mmap_watch_read(r->mmaps, note_remap, r);
		while ((tgid = remaps_take(&r->remaps, monotonic_ns())))
			process_reader_ask(r->processes, tgid, REQUEST_READ);
	}
	return NULL;
}

/*
 * Reads running processes, so that even the first waits have whole stacks. Where BPF finds out itself what they have mapped,
 * that goes on while it records: only the tables that most of them need are worth waiting for, and these come first.
 */
static int read_all_processes(struct recording *r, struct err *err)
{
	const bool waits = !offcpu_probe_finds_code(r->probe);
	struct tid_list pids = {0};
	int rc = waits ? 0 : process_reader_start(r->processes, err);

	if (rc < 0)
		return rc;
	process_list_all(&pids); /* as far as memory allows: BPF asks for the others when they wait */
	for (size_t i = 0; i < pids.len; i++) {
		if (waits)
			process_reader_read(r->processes, pids.data[i], NULL);
		else
			process_reader_ask(r->processes, pids.data[i], REQUEST_READ);
	}
	vec_deinit(&pids);
	if (!waits)
		process_reader_wait(r->processes, monotonic_ns() + HEAD_START_NS);
	return 0;
}

/* `asked_for`: named by the user, not only found: so failing to read it is worth a note. */
static int watch_process(struct recording *r, pid_t pid, bool asked_for, struct err *err)
{
	struct err why = {0};
	int rc = offcpu_probe_watch(r->probe, pid, err);

	if (rc < 0 || !r->options.watch.user_stacks)
		return rc;
	if (r->reading)
		process_reader_ask(r->processes, pid, REQUEST_READ);
	else if (process_reader_read(r->processes, pid, &why) < 0 && asked_for)
		record_notes_add(&r->notes, "no user stacks of one process", why.msg);
	return 0;
}

/* Existing children; BPF sees later ones itself. 1: there were some that were not known. */
static int watch_descendants(struct recording *r, struct err *err)
{
	struct tid_list pids = {0};
	bool found = false;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->options.watch.npids; i++)
		rc = vec_push(&pids, r->options.watch.pids[i]) ? 0 : -ENOMEM;
	if (rc == 0)
		rc = process_add_descendants(&pids);
	if (rc < 0)
		err_set(err, -rc, "looking for children: %s", strerror(-rc));
	for (size_t i = r->options.watch.npids; rc == 0 && i < pids.len; i++)
		if (pids.data[i] != getpid() && !offcpu_probe_is_watched(r->probe, pids.data[i])) {
			rc = watch_process(r, pids.data[i], false, err);
			found = true;
		}
	vec_deinit(&pids);
	return rc < 0 ? rc : found;
}

/*
 * Children may be started while we look for others: repeat until there are no new ones, when all parents are watched.
 * Some end meanwhile, and are watched in vain; that must not go on for ever.
 */
static int watch_latecomers(struct recording *r, struct err *err)
{
	enum { MAX_ROUNDS = 20 };
	int found = 1, rc = 0;

	for (int i = 0; rc == 0 && found > 0 && i < MAX_ROUNDS; i++) {
		found = watch_descendants(r, err);
		rc = found > 0 ? offcpu_probe_note_waiting(r->probe, err) : found;
	}
	return rc;
}

static int watch(struct recording *r, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->options.watch.npids; i++)
		rc = watch_process(r, r->options.watch.pids[i], true, err);
	if (rc == 0 && r->options.watch.children)
		rc = watch_descendants(r, err);
	if (rc < 0)
		return rc;
	return r->options.watch.all_processes && r->options.watch.user_stacks ? read_all_processes(r, err) : 0;
}

/*
 * Some sandboxes hide processes from BPF. If it is one of them, a note says so; if it is all, sampling has to do the
 * work.
 */
static int find_hidden(struct recording *r, struct err *err)
{
	size_t hidden = 0;
	struct err why;

	for (size_t i = 0; i < r->options.watch.npids; i++) {
		const pid_t pid = r->options.watch.pids[i];

		if (!offcpu_probe_is_hidden(r->probe, pid) || !process_lives(pid))
			continue;
		err_set(&why, ENOENT, "BPF's task iterator does not list process %d", (int)pid);
		record_notes_add_failed_read(&r->notes, "waits of one process may be missing", why.msg);
		hidden++;
	}
	return hidden && hidden == r->options.watch.npids ? err_set(err, ENOENT, "%s", why.msg) : 0;
}

/* Notes what this kernel cannot do. */
static void settle_for_less(struct recording *r)
{
	const char *user = offcpu_probe_lacks_user_stacks(r->probe), *kernel = offcpu_probe_lacks_kernel_stacks(r->probe);
	const char *passed_over = offcpu_probe_passed_over(r->probe);
	const bool at_switch = strcmp(offcpu_probe_method(r->probe), "switch") == 0;

	if (passed_over)
		record_notes_add(&r->notes,
				 at_switch ? "stacks are taken at every switch, which costs much more" : "stacks are taken by a kprobe, which costs more",
				 passed_over);
	if (user && r->options.watch.user_stacks) {
		record_notes_add(&r->notes, "no user stacks", user);
		r->names.no_user_stacks = user;
		r->options.watch.user_stacks = r->options.watch.runtimes = false;
	}
	if (kernel && r->options.watch.kernel_stacks) {
		record_notes_add(&r->notes, "no kernel stacks", kernel);
		r->names.no_kernel_stacks = kernel;
		r->options.watch.kernel_stacks = false;
	}
	if (kernel && r->options.watch.wakers)
		record_notes_add(&r->notes, "an interrupt that ends a wait is mistaken for the thread that it hit", kernel);
}

static int start_threads(struct recording *r, struct err *err)
{
	int rc = process_reader_start(r->processes, err);
	sigset_t before;

	if (rc == 0)
		rc = runtime_processes_start(r->runtimes, err);
	if (rc < 0)
		return rc;
	signals_block_for_worker(&before);
	r->reading = pthread_create(&r->reader, NULL, read_records, r) == 0;
	r->mapping = r->reading && r->mmaps && pthread_create(&r->mapper, NULL, watch_mmaps, r) == 0;
	signals_restore(&before);
	return r->reading ? 0 : err_set(err, EAGAIN, "cannot create a thread");
}

/* Some may end before the recording does. A command is not what it will be yet. */
static void read_programs(struct recording *r)
{
	if (r->options.only_new)
		return;
	if (r->options.watch.all_processes)
		programs_read_all(r->programs);
	else
		programs_read(r->programs, r->options.watch.pids, r->options.watch.npids);
}

static int create_probe(struct recording *r, struct err *err)
{
	const struct watch_options *watch = &r->options.watch;
	const struct offcpu_probe_options options = {
		.rung = r->options.rung,
		.pretended = r->options.read_maps ? OFFCPU_NEVER_FINDS : 0,
		.filter = watch->filter,
		.all_processes = watch->all_processes,
		.children = watch->children,
		.kernel_stacks = watch->kernel_stacks,
		.user_stacks = watch->user_stacks,
		.runtimes = watch->runtimes,
		.wakers = watch->wakers,
		.only_new = r->options.only_new,
		.events = r->options.events,
		.ring_bytes = r->options.events ? EVENTS_BYTES : RING_BYTES,
		.max_mappings = TABLES_MAX_MAPPINGS,
	};

	return offcpu_probe_create(&options, err, &r->probe);
}

int recording_start(const struct recording_options *options, struct err *err, struct recording **out)
{
	const struct waits_options waits = {.max_rows = MAX_ROWS, .max_stack_bytes = MAX_STACK_BYTES};
	const struct runtime_processes_options runtimes = {.keep = options->watch.keep_native};
	_cleanup_(cleanup_recording) struct recording *r = calloc(1, sizeof(*r));
	struct err why = {0};
	int rc;

	if (!r)
		return err_set(err, ENOMEM, "out of memory");
	r->watch.ops = &recording_ops;
	r->options = *options;
	late_places_init(&r->late_places);
	record_events_init(&r->events);
	if (!record_notes_init(&r->notes))
		return err_set(err, ENOMEM, "out of memory");
	rc = process_check_numbers(err);
	if (rc == 0)
		rc = create_probe(r, err);
	if (rc < 0)
		return rc;
	settle_for_less(r);
	r->runtimes = runtime_processes_create(r->probe, &runtimes);
	r->tables = r->runtimes ? tables_create(r->probe) : NULL;
	if (r->tables && r->options.watch.runtimes)
		tables_set_runtimes(r->tables, r->runtimes);
	r->processes = r->tables ? process_reader_create(r->tables) : NULL;
	r->waits = r->processes ? waits_create(r->tables, &waits) : NULL;
	r->names.hide_kernel_stacks = !options->watch.kernel_stacks;
	r->names.hide_user_stacks = !options->watch.user_stacks;
	r->names.native = options->watch.names;
	r->names.native.find = tables_module;
	r->names.native.find_made = tables_find_made;
	r->names.native.find_ctx = r->tables;
	r->names.merge = runtime_processes_merge;
	r->names.thread_name = runtime_processes_thread_name;
	r->names.merge_arg = r->runtimes;
	r->names.no_maps = why_no_maps;
	r->names.no_maps_arg = r;
	r->naming = r->waits ? offcpu_naming_create(&r->names) : NULL;
	r->programs = programs_create();
	if (!r->naming || !r->programs)
		return err_set(err, ENOMEM, "out of memory");
	if (r->options.watch.user_stacks && mmap_watch_create(&why, &r->mmaps) < 0) /* before maps are read */
		record_notes_add(&r->notes, "code that is mapped later is known only after a first wait in it", why.msg);
	rc = watch(r, err);
	if (rc == 0)
		rc = offcpu_probe_start(r->probe, err);
	if (rc == 0)
		rc = find_hidden(r, err);
	if (rc < 0)
		return rc;
	r->started_ns = offcpu_probe_begin_ns(r->probe);
	r->epoch_ns = (int64_t)clock_ns(CLOCK_REALTIME) - (int64_t)monotonic_ns();
	rc = start_threads(r, err);
	if (rc == 0 && options->watch.children)
		rc = watch_latecomers(r, err);
	if (rc < 0)
		return rc;
	read_programs(r);
	*out = steal_ptr(r);
	return 0;
}

static void end_threads(struct recording *r)
{
	atomic_store(&r->ending, true);
	if (r->reading)
		pthread_join(r->reader, NULL);
	if (r->mapping)
		pthread_join(r->mapper, NULL);
	if (r->processes)
		process_reader_end(r->processes);
	if (r->runtimes)
		runtime_processes_end(r->runtimes);
	r->reading = r->mapping = false;
}

static void recording_destroy(struct watch *watch)
{
	struct recording *r = (struct recording *)watch;

	end_threads(r);
	late_places_deinit(&r->late_places);
	stack_copies_deinit(&r->copies);
	waits_destroy(r->waits);
	programs_destroy(r->programs);
	process_reader_destroy(r->processes);
	runtime_processes_destroy(r->runtimes);
	tables_destroy(r->tables);	  /* its modules write to the cache, with options that belong to the naming */
	offcpu_naming_destroy(r->naming);
	mmap_watch_destroy(r->mmaps);
	remaps_deinit(&r->remaps);
	offcpu_probe_destroy(r->probe);
	record_notes_deinit(&r->notes);
	record_events_deinit(&r->events);
	free(r);
}

struct watch *recording_watch(struct recording *r)
{
	return &r->watch;
}

static bool recording_is_over(const struct watch *watch)
{
	return !offcpu_probe_watches_any(((const struct recording *)watch)->probe);
}

struct offcpu_profile recording_head(const struct recording *r)
{
	return (struct offcpu_profile){
		.start_ns = r->epoch_ns + (int64_t)r->started_ns,
		.method = offcpu_probe_method(r->probe),
		.filter = r->options.watch.filter,
		.by_process = !r->options.watch.by_thread,
	};
}

static struct watch_progress recording_progress(struct watch *watch)
{
	struct recording *r = (struct recording *)watch;
	uint64_t lost = process_reader_counts(r->processes).lost + atomic_load(&r->events.lost);

	for (int i = 0; i < OFFCPU_LOSSES; i++)
		lost += offcpu_probe_loss(r->probe, i);
	return (struct watch_progress){.waits = offcpu_probe_seen(r->probe), .lost = lost};
}

static bool add_losses(const struct recording *r, struct offcpu_profile *out)
{
	static const char *const names[OFFCPU_LOSSES] = {
		[OFFCPU_LOST_WAITS] = "waits_ring_full",
		[OFFCPU_LOST_STACKS] = "stacks_ring_full",
		[OFFCPU_LOST_STATE] = "threads_no_memory",
		[OFFCPU_LOST_REQUESTS] = "requests_ring_full",
		[OFFCPU_LOST_RESUMES] = "resumes_missed",
		[OFFCPU_LOST_PROCESSES] = "processes_over_limit",
	};
	const uint64_t not_asked = offcpu_probe_loss(r->probe, OFFCPU_LOST_ASKED);
	const struct tables_losses tables = tables_losses(r->tables);
	const struct offcpu_loss others[] = {
		{"rows_over_limit", waits_lost(r->waits)},
		{"stacks_over_limit", waits_stacks_lost(r->waits)},
		{"events_over_limit", atomic_load(&r->events.lost)},
		{"mappings_over_limit", tables.mappings},
		{"files_over_limit", tables.objects},
		{"jit_processes_over_limit", tables.jit_processes},
		{"requests_over_limit", process_reader_counts(r->processes).lost + not_asked},
		{"reads_failed", r->notes.reads_failed},
	};
	bool ok = true;

	for (int i = 0; ok && i < OFFCPU_LOSSES; i++)
		if (names[i])
			ok = vec_push(&out->losses, (struct offcpu_loss){names[i], offcpu_probe_loss(r->probe, i)});
	for (size_t i = 0; ok && i < sizeof(others) / sizeof(others[0]); i++)
		ok = vec_push(&out->losses, others[i]);
	return ok;
}

/* `unfinished` is NULL when the stacks could not be read; `why` says why. */
static void give_stack(struct recording *r, struct unfinished *unfinished, const char *why, const struct offcpu_open *open,
		       struct offcpu_wait *wait)
{
	const struct offcpu_stack_id *taken = &wait->key.stack; /* at the start of the wait */

	if (taken->low && taken->low != OFFCPU_STACK_BEFORE)
		return;
	if (unfinished)
		unfinished_add_stack(unfinished, open, r->waits, wait);
	else
		unfinished_add_reason(why, r->options.watch.user_stacks, r->waits, wait);
}

/* Takes the waits that go on when the time is over. */
static void take_unfinished(struct recording *r)
{
	const struct unfinished_options options = {.kernel_stacks = r->options.watch.kernel_stacks,
						   .user_stacks = r->options.watch.user_stacks,
						   .runtimes = r->options.watch.runtimes ? r->runtimes : NULL};
	struct unfinished *unfinished = NULL;
	const struct offcpu_open *open = NULL;
	const struct offcpu_ran *ran = NULL;
	struct err err = {0}, why = {0};
	size_t n = 0, nran = 0;

	if (offcpu_probe_ran(r->probe, &err, &ran, &nran) < 0)
		record_notes_add(&r->notes, "the time that threads were on a CPU is not known", err.msg);
	if (unfinished_read(r->probe, r->tables, &options, &why, &unfinished) < 0)
		record_notes_add(&r->notes, "waits that are not over have no stacks", why.msg);
	if (offcpu_probe_stop(r->probe, &err, &open, &n) < 0)
		record_notes_add_failed_read(&r->notes, "waits that are not over are missing", err.msg);
	end_threads(r);
	offcpu_probe_poll(r->probe, 0, take_record, r); /* what was still in the ring */
	for (size_t i = 0; i < nran; i++)
		waits_add_ran(r->waits, &ran[i], sizeof(ran[i]));
	for (size_t i = 0; i < n; i++) {
		struct offcpu_wait wait = open[i].wait;

		give_stack(r, unfinished, why.msg, &open[i], &wait);
		take_wait(r, &wait, sizeof(wait));
	}
	unfinished_destroy(unfinished);
}

static void take_sums(void *arg, const struct offcpu_key *key, const struct offcpu_sums *sums,
		      const struct offcpu_lengths_counted *lengths)
{
	waits_add_sums(arg, key, sums, lengths);
}

static void recording_stop(struct watch *watch)
{
	struct recording *r = (struct recording *)watch;
	int rc;

	if (r->ended_ns)
		return;
	r->ended_ns = offcpu_probe_end(r->probe);
	take_unfinished(r);
	rc = offcpu_probe_sums(r->probe, take_sums, r->waits);
	if (rc < 0)
		record_notes_add_failed_read(&r->notes, "waits are missing, their sums cannot be read", strerror(-rc));
	programs_read_waiting(r->programs, r->waits);
}

static bool has_user_errors(const struct offcpu_profile *profile)
{
	for (size_t i = 0; i < profile->rows.len; i++)
		if (profile->rows.data[i].user_error || profile->rows.data[i].waker.user_error)
			return true;
	return false;
}

/* Notes what may have made stacks end early; the stacks that did say so themselves. */
static void add_notes(struct recording *r, const struct offcpu_profile *profile)
{
	char why[128];
	const struct process_reader_counts processes = process_reader_counts(r->processes);
	uint64_t remaps = r->mmaps ? mmap_watch_lost(r->mmaps) : 0;

	if (!has_user_errors(profile))
		return;
	if (processes.gone) {
		snprintf(why, sizeof(why), "%" PRIu64 " %s had ended before the maps could be read", processes.gone,
			 processes.gone == 1 ? "process" : "processes");
		record_notes_add(&r->notes, "user stacks may end early", why);
	}
	if (remaps) {
		snprintf(why, sizeof(why), "%" PRIu64 " %s faster than could be read", remaps,
			 remaps == 1 ? "note of a new mapping came" : "notes of new mappings came");
		record_notes_add(&r->notes, "user stacks may end early", why);
	}
	if (processes.denied) {
		snprintf(why, sizeof(why), "the maps of %" PRIu64 " %s cannot be read; the rows say why", processes.denied,
			 processes.denied == 1 ? "process" : "processes");
		record_notes_add(&r->notes, "user stacks end early", why);
	}
}

/* Notes why code made at run time may lack names. */
static void add_made_notes(struct recording *r)
{
	struct few_notes few = {.notes = &r->notes};

	tables_notes(r->tables, few_notes_add, &few);
	runtime_processes_notes(r->runtimes, few_notes_add, &few);
	few_notes_end(&few, "names of code made at run time");
}

/* What is left to read of processes, and to walk, once. */
static void walk_late(struct recording *r)
{
	if (r->walked)
		return;
	r->walked = true;
	runtime_processes_name_threads(r->runtimes);
	stack_copies_walk(&r->copies, r->tables, r->waits, runtime_processes_place, r->runtimes);
	stack_copies_deinit(&r->copies);
	if (!r->options.events && !offcpu_probe_loss(r->probe, OFFCPU_LOST_REQUESTS)) /* else an exec may be missing */
		late_places_find(&r->late_places, r->tables, r->waits);
}

static bool recording_prepare(struct watch *watch, struct watch_targets *out)
{
	struct recording *r = (struct recording *)watch;

	recording_stop(watch);
	walk_late(r);
	return offcpu_naming_ask_kernel(r->naming, r->waits) && tables_prepare_names(r->tables, out);
}

static void recording_keep_names(struct watch *watch)
{
	tables_keep_names(((struct recording *)watch)->tables);
}

static void recording_forgo_names(struct watch *watch)
{
	offcpu_naming_forgo(((struct recording *)watch)->naming);
}

static int recording_finish(struct watch *watch, struct err *err, struct offcpu_profile *out)
{
	struct recording *r = (struct recording *)watch;

	recording_stop(watch);
	walk_late(r);
	*out = recording_head(r);
	out->duration_ns = r->ended_ns - r->started_ns;
	waits_settle_ran(r->waits, r->started_ns);
	if (!programs_fill(r->programs, r->waits, out) || !offcpu_naming_fill(r->naming, r->waits, out) ||
	    !add_losses(r, out))
		return err_set(err, ENOMEM, "out of memory");
	add_notes(r, out);
	add_made_notes(r);
	return record_notes_give(&r->notes, out) ? 0 : err_set(err, ENOMEM, "out of memory");
}

static const struct watch_ops recording_ops = {
	.destroy = recording_destroy,
	.is_over = recording_is_over,
	.progress = recording_progress,
	.stop = recording_stop,
	.prepare = recording_prepare,
	.keep_names = recording_keep_names,
	.forgo_names = recording_forgo_names,
	.finish = recording_finish,
};
