/* SPDX-License-Identifier: MIT */
#include "cmd/offcpu_events.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/signals.h"
#include "report/report.h"

enum { FIRST_INTERVAL_NS = 10000000, INTERVAL_NS = 100000000 };

/* The first failure counts: the later ones do not know why. */
static void keep(struct event_writer *writer, int rc)
{
	if (rc < 0 && event_writer_works(writer))
		atomic_store(&writer->error, -rc);
}

static void write_event(void *arg, const struct offcpu_event *event)
{
	struct event_writer *writer = arg;

	if (event_writer_works(writer))
		keep(writer, report_offcpu_event(&writer->stacks, event, writer->out));
}

/*
 * What cannot be written any more is still taken: it is not what the recording loses. Nothing is left in the stream, or
 * it would be written at the exit, where a broken pipe ends us.
 */
static void write_events(struct event_writer *writer)
{
	bool works = event_writer_works(writer);

	if (!recording_take_events(writer->recording, works ? write_event : NULL, writer))
		keep(writer, -ENOMEM);
	if (works)
		keep(writer, report_flush(writer->out));
}

/* Somebody waits for the first ones; later there are many at a time. */
static void *write_on(void *arg)
{
	struct event_writer *writer = arg;
	uint64_t interval_ns = FIRST_INTERVAL_NS;

	while (pacer_rest_until(&writer->pacer, monotonic_ns() + interval_ns)) {
		write_events(writer);
		interval_ns = interval_ns * 2 < INTERVAL_NS ? interval_ns * 2 : INTERVAL_NS;
	}
	return NULL;
}

/* In the first thread: whoever has stopped to read the events must not end us, there may be a report to write. */
static void block_broken_pipe(sigset_t *before)
{
	sigset_t broken;

	sigemptyset(&broken);
	sigaddset(&broken, SIGPIPE);
	sigprocmask(SIG_BLOCK, &broken, before);
}

static void restore_broken_pipe(const sigset_t *before)
{
	sigset_t broken;

	sigemptyset(&broken);
	sigaddset(&broken, SIGPIPE);
	if (!sigismember(before, SIGPIPE))
		sigtimedwait(&broken, NULL, &(struct timespec){0});
	sigprocmask(SIG_SETMASK, before, NULL);
}

static int tell(const struct event_writer *writer, struct err *err)
{
	int error = atomic_load(&writer->error);

	return error ? err_set(err, error, "the events cannot be written: %s", strerror(error)) : 0;
}

int event_writer_start(struct event_writer *writer, FILE *out, struct recording *recording, struct err *err)
{
	struct offcpu_profile head;
	sigset_t before;
	int error;

	*writer = (struct event_writer){.out = out, .recording = recording};
	if (!out)
		return 0;
	head = recording_head(recording);
	block_broken_pipe(&before);
	atomic_store(&writer->error, -report_offcpu_events_begin(&head, out));
	restore_broken_pipe(&before);
	pacer_init(&writer->pacer);
	signals_block_for_worker(&before);
	error = pthread_create(&writer->thread, NULL, write_on, writer);
	signals_restore(&before);
	writer->running = !error;
	if (!error)
		return 0;
	pacer_deinit(&writer->pacer);
	return err_set(err, error, "cannot create a thread: %s", strerror(error));
}

bool event_writer_works(const struct event_writer *writer)
{
	return !atomic_load(&writer->error);
}

int event_writer_stop(struct event_writer *writer, struct err *err)
{
	sigset_t before;

	if (!writer->running)
		return tell(writer, err);
	pacer_end(&writer->pacer);
	pthread_join(writer->thread, NULL);
	pacer_deinit(&writer->pacer);
	writer->running = false;
	block_broken_pipe(&before);
	write_events(writer);
	restore_broken_pipe(&before);
	return tell(writer, err);
}

int event_writer_end(struct event_writer *writer, const struct offcpu_profile *profile, struct err *err)
{
	sigset_t before;

	if (!writer->out || !event_writer_works(writer))
		return tell(writer, err);
	block_broken_pipe(&before);
	atomic_store(&writer->error, -report_offcpu_events_end(profile, writer->out));
	restore_broken_pipe(&before);
	return tell(writer, err);
}

void event_writer_deinit(struct event_writer *writer)
{
	event_writer_stop(writer, NULL);
	offcpu_event_stacks_deinit(&writer->stacks);
}
