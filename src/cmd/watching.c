/* SPDX-License-Identifier: MIT */
#include "cmd/watching.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cmd/cmd.h"
#include "proc/family.h"
#include "report/watch_words.h"
#include "wait/graph.h"
#include "watch/rounds.h"

enum {
	MOST_TOLD_AT_ONCE = 32, /* deadlocks and notes, by a parser in one round, */
	MOST_TOLD = 1000,       /* and all of them */
};

/* What a parser leaves. It may have been made to write anything there. */
struct watch_board {
	uint32_t ntold;
	uint32_t doubt; /* the next round is to be named in any case */
	uint64_t told[MOST_TOLD_AT_ONCE]; /* what need not be told again */
	char places[][WATCH_PLACE];       /* in the order of watch.threads */
};

bool watching_init(struct watching *w, const struct capture_args *args, struct view *view)
{
	*w = (struct watching){.args = args, .view = view};
	view->borrows = true;
	return watch_init(&w->watch);
}

static void drop_board(struct watching *w)
{
	if (w->board)
		munmap(w->board, w->board_size);
	w->board = NULL;
}

void watching_deinit(struct watching *w)
{
	for (size_t i = 0; i < w->tracings.len; i++)
		tracing_destroy(w->tracings.data[i]);
	vec_deinit(&w->tracings);
	vec_deinit(&w->ids);
	vec_deinit(&w->told);
	drop_board(w);
	watch_deinit(&w->watch);
}

int watching_find(struct watching *w, unsigned *missing, struct err *err)
{
	_cleanup_(notes_deinit) struct notes unknown = {0};
	int rc = capture_args_find(w->args, err, &w->ids, &unknown);

	for (size_t i = 0; rc == 0 && i < unknown.len; i++)
		cmd_complain(unknown.data[i]);
	*missing = (unsigned)unknown.len;
	if (rc == 0 && w->ids.len > CAPTURE_TOGETHER)
		rc = err_set(err, E2BIG, "these are too many processes to be looked at in one instant");
	for (size_t i = 0; rc == 0 && i < w->ids.len; i++)
		if (!vec_push(&w->tracings, NULL))
			rc = err_set(err, ENOMEM, "out of memory");
	return rc;
}

/* Deadlocks do not change: the same threads are the same one. But one that was only likely may have been none. */
static uint64_t deadlock_key(const struct deadlock *d)
{
	uint64_t key = d->likely;

	for (size_t i = 0; i < d->len; i++) /* in any order: which one is the first is chance */
		key += hash_u64(hash_u64(HASH_SEED, (uint64_t)d->data[i]->snap->pid), (uint64_t)d->data[i]->thread->tid);
	return key;
}

static bool was_told(const struct watching *w, uint64_t key)
{
	for (size_t i = 0; i < w->told.len; i++)
		if (w->told.data[i] == key)
			return true;
	return false;
}

static void remember(struct watching *w, uint64_t key)
{
	if (w->told.len < MOST_TOLD && !was_told(w, key))
		(void)!vec_push(&w->told, key); /* else it is told again */
}

/* Whether it is to be told now: it was not, and what is told then will be known. What is too much for one round is left to the next. */
static bool is_to_be_told(struct watching *w, uint64_t key)
{
	if (was_told(w, key))
		return false;
	if (w->board->ntold >= MOST_TOLD_AT_ONCE) {
		w->board->doubt |= w->told.len + MOST_TOLD_AT_ONCE < MOST_TOLD; /* else it would be told in each round */
		return false;
	}
	w->board->told[w->board->ntold++] = key;
	return true;
}

static uint64_t note_key(const char *note)
{
	return hash_bytes(HASH_SEED, note, strlen(note));
}

/* Notes of names: those of the captures are told already. */
static void add_notes(struct watching *w, const struct trace *const *traces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i]->notes.len; k++)
			if (is_to_be_told(w, note_key(traces[i]->notes.data[k])))
				watch_note(&w->watch, traces[i]->notes.data[k]);
}

/* Those that were not told before; `fresh` only borrows them. */
static bool find_fresh(struct watching *w, const struct deadlocks *all, struct deadlocks *fresh)
{
	fresh->maybe_more = all->maybe_more;
	fresh->doubt = all->doubt;
	for (size_t i = 0; i < all->len; i++) {
		if (is_to_be_told(w, deadlock_key(&all->data[i])) && !vec_push(fresh, all->data[i]))
			return false;
	}
	return true;
}

/* Copies, since a parser that was made to may go on to write there. */
static void take_places(struct watching *w)
{
	struct watch_log *watch = &w->watch;
	char place[WATCH_PLACE];

	for (size_t i = 0; i < watch->threads.len; i++) {
		memcpy(place, w->board->places[i], sizeof(place));
		place[sizeof(place) - 1] = '\0';
		if (watch->threads.data[i].seen)
			watch_put_place(watch, &watch->threads.data[i], *place ? place : NULL);
	}
	w->places_taken = true;
}

/* For struct view_writer: of a round. */
static int write_round(void *arg, const struct view *view, FILE *out, bool *deadlock, bool *incomplete)
{
	struct watching *w = arg;
	const struct trace *const *traces = (const struct trace *const *)view->traces.data;
	_cleanup_(deadlocks_deinit) struct deadlocks all = {0};
	struct deadlocks fresh = {0};
	struct watch_report report = {
		.watch = &w->watch, .traces = traces, .n = view->traces.len, .deadlocks = &all, .fresh = &fresh};
	int rc = deadlocks_find(traces, view->traces.len, &all) && find_fresh(w, &all, &fresh) ? 0 : -ENOMEM;

	add_notes(w, traces, view->traces.len);
	*deadlock |= deadlocks_has_proved(&all);
	*incomplete |= all.maybe_more || deadlocks_has_likely(&all);
	w->board->doubt |= all.maybe_more && all.doubt == DOUBT_UNPROVED; /* what else is in doubt another look does not tell */
	for (size_t i = 0; i < w->watch.threads.len; i++)
		if (w->watch.threads.data[i].seen)
			watch_name_place(w->watch.threads.data[i].traced, w->board->places[i]);
	take_places(w);
	if (rc == 0)
		rc = view->options.format->watch_round(&report, &view->options.report, out);
	vec_deinit(&fresh);
	return rc;
}

/* The same where nothing has changed: the names are still those of the round before, and so are the waits and who can end them. */
static int write_quiet_round(void *arg, const struct view *view, FILE *out, bool *deadlock, bool *incomplete)
{
	struct watching *w = arg;
	const struct watch_report report = {.watch = &w->watch};

	for (size_t i = 0; i < w->watch.threads.len; i++)
		if (w->watch.threads.data[i].seen)
			watch_put_place(&w->watch, &w->watch.threads.data[i], w->watch.threads.data[i].place);
	return view->options.format->watch_round(&report, &view->options.report, out);
}

static int write_summary(void *arg, const struct view *view, FILE *out, bool *deadlock, bool *incomplete)
{
	struct watching *w = arg;
	const struct trace *const *traces = (const struct trace *const *)view->traces.data;
	_cleanup_(deadlocks_deinit) struct deadlocks all = {0};
	const struct watch_report report = {.watch = &w->watch, .traces = traces, .n = view->traces.len, .deadlocks = &all};

	if (!deadlocks_find(traces, view->traces.len, &all))
		return -ENOMEM;
	*deadlock |= deadlocks_has_proved(&all);
	return view->options.format->watch_summary(&report, &view->options.report, out);
}

static int make_board(struct watching *w, struct err *err)
{
	void *shared;

	drop_board(w);
	w->board_size = sizeof(*w->board) + w->watch.threads.len * WATCH_PLACE;
	shared = mmap(NULL, w->board_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return err_set(err, errno, "out of memory");
	w->board = shared;
	w->places_taken = false;
	return 0;
}

/* What the parser has left, as far as it makes sense. */
static void read_board(struct watching *w)
{
	struct watch_board board;

	memcpy(&board, w->board, sizeof(board));
	w->doubt = board.doubt;
	for (uint32_t i = 0; i < board.ntold && i < MOST_TOLD_AT_ONCE; i++)
		remember(w, board.told[i]);
	if (!w->places_taken)
		take_places(w);
}

/* Has what was captured last of each process named, and written. */
static int show(struct watching *w, struct view_writer writer, struct err *err)
{
	int rc = 0;

	w->view->writer = writer;
	for (size_t i = 0; rc == 0 && i < w->tracings.len; i++)
		if (w->tracings.data[i] && !vec_push(&w->view->held, w->tracings.data[i]))
			rc = err_set(err, ENOMEM, "out of memory");
	if (rc < 0)
		return rc;
	return w->view->held.len ? view_finish(w->view, err) : view_finish_bare(w->view, err);
}

/* What captures had to say, each once. */
static void add_capture_notes(struct watching *w)
{
	for (size_t i = 0; i < w->tracings.len; i++) {
		const struct notes *notes = w->tracings.data[i] ? &tracing_snapshot(w->tracings.data[i])->notes : NULL;

		for (size_t k = 0; notes && k < notes->len; k++) {
			if (was_told(w, note_key(notes->data[k])))
				continue;
			watch_note(&w->watch, notes->data[k]);
			remember(w, note_key(notes->data[k]));
		}
	}
}

static int tell_round(struct watching *w, struct err *err)
{
	int rc;

	add_capture_notes(w);
	if (!w->doubt && w->watch.rounds > 1 && !watch_has_changed(&w->watch)) {
		w->view->writer = (struct view_writer){.write = write_quiet_round, .arg = w};
		return view_finish_bare(w->view, err);
	}
	rc = make_board(w, err);
	if (rc == 0)
		rc = show(w, (struct view_writer){.write = write_round, .arg = w}, err);
	if (rc == 0)
		read_board(w);
	return rc;
}

/* From now on nobody else is meant by its number. */
static void pin(struct process_id *id, const struct tracing *tracing)
{
	struct process_info info;

	if (!id->start_time && process_info(&tracing_target(tracing)->process, &info) == 0)
		id->start_time = info.start_time;
}

static int take(struct watching *w, size_t i, struct tracing_job *job, struct err *err)
{
	struct tracing *before = w->tracings.data[i];
	bool ended = job->rc == -ESRCH;
	bool ok;

	if (job->rc == 0) {
		pin(&w->ids.data[i], job->tracing);
		w->tracings.data[i] = job->tracing;
		ok = watch_see(&w->watch, tracing_walked(job->tracing)); /* who was in the one before is in this one, or has ended */
		tracing_destroy(before);
	} else {
		ok = watch_miss(&w->watch, w->ids.data[i].pid, ended, job->err.msg);
		if (ended) {
			tracing_destroy(before);
			w->tracings.data[i] = NULL;
		}
	}
	return ok ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* Nobody is captured twice who has ended. */
static void forget_ended(struct watching *w, const struct tracing_job *jobs)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->ids.len; i++) {
		const struct watched_process *p = watch_process(&w->watch, w->ids.data[i].pid);

		if (jobs[i].rc == -ESRCH || (p && p->ended)) {
			tracing_destroy(w->tracings.data[i]);
			continue;
		}
		w->ids.data[kept] = w->ids.data[i];
		w->tracings.data[kept++] = w->tracings.data[i];
	}
	w->ids.len = w->tracings.len = kept;
}

int watching_look(struct watching *w, struct err *err)
{
	_cleanup_free_ struct tracing_job *jobs = calloc(w->ids.len + 1, sizeof(*jobs));
	bool any = false;
	int rc = 0;

	if (!jobs)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < w->ids.len; i++)
		jobs[i].id = w->ids.data[i];
	watch_begin_round(&w->watch, monotonic_ns());
	capture_args_take(w->args, &w->view->options, jobs, w->ids.len);
	for (size_t i = 0; i < w->ids.len; i++) {
		int failed = take(w, i, &jobs[i], err);

		rc = rc ? rc : failed;
		any |= jobs[i].rc == 0;
	}
	if (rc == 0 && w->watch.rounds == 1 && !any) {
		for (size_t i = 0; i < w->ids.len; i++)
			cmd_complain(jobs[i].err.msg);
		return -ENODATA;
	}
	forget_ended(w, jobs);
	return rc == 0 ? tell_round(w, err) : rc;
}

int watching_sum_up(struct watching *w, struct err *err)
{
	return show(w, (struct view_writer){.write = write_summary, .arg = w}, err);
}
