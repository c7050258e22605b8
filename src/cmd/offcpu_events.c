/* SPDX-License-Identifier: MIT */
#include "cmd/offcpu_events.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/signals.h"
#include "report/offcpu.h"
#include "report/report.h"

enum { INTERVAL_NS = 100000000 };

static void write_event(void *arg, const struct offcpu_event *event)
{
	report_offcpu_event(event, arg);
}

static int write_events(struct event_writer *writer)
{
	if (!recording_take_events(writer->recording, write_event, writer->out))
		return ENOMEM;
	return -report_flush(writer->out);
}

static void *write_on(void *arg)
{
	struct event_writer *writer = arg;
	int error = 0;

	while (!error && pacer_rest_until(&writer->pacer, monotonic_ns() + INTERVAL_NS))
		error = write_events(writer);
	atomic_store(&writer->error, error);
	return NULL;
}

static int tell(int error, struct err *err)
{
	return err_set(err, error, "the events cannot be written: %s", strerror(error));
}

int event_writer_start(struct event_writer *writer, FILE *out, struct recording *recording, struct err *err)
{
	struct offcpu_filter filter;
	sigset_t before;
	int error;

	*writer = (struct event_writer){.out = out, .recording = recording};
	if (!out)
		return 0;
	filter = recording_filter(recording);
	error = -report_offcpu_events_begin(recording_method(recording), false, &filter, out);
	if (error)
		return tell(error, err);
	pacer_init(&writer->pacer);
	signals_block_for_worker(&before);
	error = pthread_create(&writer->thread, NULL, write_on, writer);
	signals_restore(&before);
	writer->running = !error;
	if (!error)
		return 0;
	pacer_deinit(&writer->pacer);
	return err_set(err, error, "no thread can be made: %s", strerror(error));
}

bool event_writer_works(const struct event_writer *writer)
{
	return !atomic_load(&writer->error);
}

int event_writer_stop(struct event_writer *writer, struct err *err)
{
	int error;

	if (!writer->running)
		return 0;
	pacer_end(&writer->pacer);
	pthread_join(writer->thread, NULL);
	pacer_deinit(&writer->pacer);
	writer->running = false;
	error = atomic_load(&writer->error);
	if (!error)
		error = write_events(writer);
	return error ? tell(error, err) : 0;
}

int event_writer_end(struct event_writer *writer, const struct offcpu_profile *profile, struct err *err)
{
	int error = writer->out ? -report_offcpu_events_end(profile, writer->out) : 0;

	return error ? tell(error, err) : 0;
}
