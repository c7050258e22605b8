/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/process_reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/signals.h"

enum {
	FIRST = -10, /* nice value for reading maps and making tables: until then, stacks of a process end at once */
	LATER = 0,   /* for what can wait */
	NOBODY = 0,  /* not a process: only wakes a thread */
};

struct process_reader {
	struct tables *tables;
	struct requests *fresh; /* for the thread that reads processes whose files are known */
	struct requests *slow;  /* for the thread that makes tables */
	struct requests *made;  /* for the thread that gives them to BPF: that there are some */
	bool reading, making, giving;
	atomic_bool ending; /* nobody needs tables any more */
	pthread_t reader;
	pthread_t maker;
	pthread_t giver;
	atomic_ullong gone;
	atomic_ullong lost;

	pthread_mutex_t lock; /* guards what follows */
	struct arena *arena;
	struct u64map reasons; /* process to why its maps cannot be read, or 0 */
	struct u64map told;    /* of these, the ones somebody asked about: not kernel threads */
};

DEFINE_CLEANUP(process_reader, struct process_reader *, process_reader_destroy)

struct process_reader *process_reader_create(struct tables *tables)
{
	_cleanup_(cleanup_process_reader) struct process_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	pthread_mutex_init(&reader->lock, NULL);
	reader->tables = tables;
	reader->fresh = requests_create();
	reader->slow = requests_create();
	reader->made = requests_create();
	reader->arena = arena_create();
	return reader->fresh && reader->slow && reader->made && reader->arena ? steal_ptr(reader) : NULL;
}

void process_reader_destroy(struct process_reader *reader)
{
	if (!reader)
		return;
	process_reader_end(reader);
	requests_destroy(reader->fresh);
	requests_destroy(reader->slow);
	requests_destroy(reader->made);
	u64map_deinit(&reader->reasons);
	u64map_deinit(&reader->told);
	arena_destroy(reader->arena);
	pthread_mutex_destroy(&reader->lock);
	free(reader);
}

/* NULL: they can be read, or the pid is another process's by now. */
static void keep_reason(struct process_reader *reader, pid_t tgid, const char *why)
{
	bool created;
	uint64_t *slot;

	pthread_mutex_lock(&reader->lock);
	slot = why ? u64map_put(&reader->reasons, (uint64_t)tgid, &created)
		   : u64map_find(&reader->reasons, (uint64_t)tgid);
	if (slot)
		*slot = why ? (uintptr_t)arena_intern(reader->arena, why) : 0;
	pthread_mutex_unlock(&reader->lock);
}

const char *process_reader_denied(struct process_reader *reader, pid_t tgid)
{
	const uint64_t *slot;
	const char *why;
	bool created;

	pthread_mutex_lock(&reader->lock);
	slot = u64map_find(&reader->reasons, (uint64_t)tgid);
	why = slot ? (const char *)(uintptr_t)*slot : NULL;
	if (why)
		u64map_put(&reader->told, (uint64_t)tgid, &created);
	pthread_mutex_unlock(&reader->lock);
	return why;
}

/* Records the result of reading a process. */
static int settle(struct process_reader *reader, pid_t tgid, int rc, const struct err *why, struct err *err)
{
	bool ended = rc == -ESRCH || rc == -ENOENT;

	if (!ended)
		keep_reason(reader, tgid, rc < 0 && why->msg[0] ? why->msg : NULL);
	if (rc == -EACCES || rc == -EPERM)
		return 0;
	return rc < 0 ? err_set(err, -rc, "%s", why->msg[0] ? why->msg : strerror(-rc)) : 0;
}

int process_reader_read(struct process_reader *reader, pid_t tgid, struct err *err)
{
	struct err why = {0};

	return settle(reader, tgid, tables_reread_process(reader->tables, tgid, &why), &why, err);
}

static void add(struct process_reader *reader, struct requests *requests, struct request request)
{
	if (requests_add(requests, request))
		return;
	atomic_fetch_add(&reader->lost, 1);
	if (request.what & REQUEST_ASKED)
		tables_refuse_process(reader->tables, request.tgid);
}

void process_reader_ask(struct process_reader *reader, pid_t tgid, uint32_t what)
{
	add(reader, reader->fresh, (struct request){.tgid = tgid, .what = what});
}

static void settle_request(struct process_reader *reader, struct request request, int rc, const struct err *why)
{
	rc = settle(reader, request.tgid, rc, why, NULL);
	if ((rc == -ESRCH || rc == -ENOENT) && request.what & REQUEST_ASKED)
		atomic_fetch_add(&reader->gone, 1);
}

/* False: it has new files, for which tables have to be made. */
static bool answer_if_known(struct process_reader *reader, struct request *request)
{
	struct err why = {0};
	int rc = -ESRCH;

	if (request->what & REQUEST_FORGET) {
		if (tables_forget_process(reader->tables, request->tgid))
			requests_add(reader->slow, (struct request){.tgid = NOBODY}); /* it then reads the names */
		keep_reason(reader, request->tgid, NULL);
	}
	request->what &= ~(uint32_t)REQUEST_FORGET;
	if (request->what & REQUEST_READ)
		rc = tables_read_known(reader->tables, request->tgid, request->what & REQUEST_ASKED, &why,
				       &request->effort);
	if (rc == -EAGAIN)
		return false;
	settle_request(reader, *request, rc, &why);
	return true;
}

/*
 * A process is never with both threads: the one that finishes second might know less. Its new files may become known
 * just as the process is handed to the other thread, which would get to it only after its next piece of work: so look
 * again.
 */
static void *read_known(void *arg)
{
	struct process_reader *reader = arg;
	struct request request;
	uint64_t made;

	setpriority(PRIO_PROCESS, 0, FIRST); /* of this thread; if that is not permitted we do without */
	while (requests_take(reader->fresh, &request))
		do {
			made = tables_made(reader->tables);
			if (requests_claim(reader->slow, &request) && answer_if_known(reader, &request))
				break;
			add(reader, reader->slow, request);
		} while (tables_made(reader->tables) != made);
	return NULL;
}

static void answer(struct process_reader *reader, struct request request)
{
	struct err why = {0};
	int rc = request.what & REQUEST_ASKED ? tables_read_process(reader->tables, request.tgid, &why)
					      : tables_reread_process(reader->tables, request.tgid, &why);

	settle_request(reader, request, rc, &why);
}

/* The kernel waits until nobody uses what was there before: no table is made later because of that. */
static void *give_tables(void *arg)
{
	struct process_reader *reader = arg;
	struct request request;

	while (requests_take(reader->made, &request))
		tables_give(reader->tables);
	return NULL;
}

/* Then all of them are with BPF. */
static void make_new_tables(struct process_reader *reader)
{
	bool any = false;

	while (!atomic_load(&reader->ending) && tables_make_one(reader->tables))
		any |= requests_add(reader->made, (struct request){.tgid = NOBODY});
	if (any)
		requests_wait(reader->made, UINT64_MAX / 2);
}

/* Usually the next process waits for the same tables that this one needed. */
static void *make_tables(void *arg)
{
	struct process_reader *reader = arg;
	struct request request;

	while (requests_take(reader->slow, &request)) {
		setpriority(PRIO_PROCESS, 0, FIRST);
		make_new_tables(reader);
		if (request.tgid != NOBODY && !answer_if_known(reader, &request))
			answer(reader, request);
		setpriority(PRIO_PROCESS, 0, LATER);
		tables_read_names(reader->tables);
	}
	return NULL;
}

int process_reader_start(struct process_reader *reader, struct err *err)
{
	sigset_t before;

	if (reader->reading)
		return 0;
	signals_block_for_worker(&before);
	reader->giving = pthread_create(&reader->giver, NULL, give_tables, reader) == 0;
	reader->making = reader->giving && pthread_create(&reader->maker, NULL, make_tables, reader) == 0;
	reader->reading = reader->making && pthread_create(&reader->reader, NULL, read_known, reader) == 0;
	signals_restore(&before);
	return reader->reading ? 0 : err_set(err, EAGAIN, "cannot create a thread");
}

/* What the first thread cannot do it gives to the second, never the other way. */
bool process_reader_wait(struct process_reader *reader, uint64_t until_ns)
{
	return requests_wait(reader->fresh, until_ns) && requests_wait(reader->slow, until_ns);
}

void process_reader_end(struct process_reader *reader)
{
	atomic_store(&reader->ending, true);
	if (reader->reading) {
		requests_end(reader->fresh);
		pthread_join(reader->reader, NULL);
	}
	if (reader->making) {
		requests_end(reader->slow);
		pthread_join(reader->maker, NULL);
	}
	if (reader->giving) { /* the maker may have waited for it */
		requests_end(reader->made);
		pthread_join(reader->giver, NULL);
	}
	reader->reading = reader->making = reader->giving = false;
	tables_read_names(reader->tables);
}

struct process_reader_counts process_reader_counts(struct process_reader *reader)
{
	struct process_reader_counts counts = {.gone = atomic_load(&reader->gone), .lost = atomic_load(&reader->lost)};

	pthread_mutex_lock(&reader->lock);
	counts.denied = reader->told.len;
	pthread_mutex_unlock(&reader->lock);
	return counts;
}
