/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include "base/cleanup.h"
#include "report/json_deadlock.h"
#include "report/json_wait.h"
#include "report/json_writer.h"
#include "report/text_table.h"
#include "report/why.h"

/* docs/schema/why.schema.json describes this document. */
static const char schema[] = "stakeout.why/1";

static void put_process(struct json *j, const struct snapshot *snap)
{
	json_object(j, NULL);
	json_int(j, "pid", snap->pid);
	json_string(j, "comm", snap->comm);
	json_bool(j, "consistent", snap->capture.consistent);
	if (snap->capture.instant_ns)
		json_time(j, "instant", snap->capture.instant_ns);
	else
		json_null(j, "instant");
	json_object_end(j);
}

/* The function that tells where it is. */
static void put_place(struct json *j, const struct trace_thread *t)
{
	const struct frame *frame = text_table_frame(t);

	if (!frame || !frame->symbol) {
		json_null(j, "place");
		return;
	}
	json_object(j, "place");
	json_string(j, "function", frame->symbol);
	json_string(j, "file", frame->file);
	json_int_or_null(j, "line", frame->file && frame->line, frame->line);
	json_object_end(j);
}

static void put_thread(struct json *j, const struct trace_thread *t)
{
	const char state[] = {t->thread->state ? t->thread->state : '?', '\0'};

	json_object(j, NULL);
	json_int(j, "pid", t->snap->pid);
	json_int(j, "tid", t->thread->tid);
	json_string(j, "name", trace_thread_name(t));
	json_string(j, "state", state);
	json_int_or_null(j, "cpu", t->thread->state == 'R' && t->thread->facts.cpu >= 0, t->thread->facts.cpu);
	json_milliseconds(j, "off_cpu_ms", t->thread->off_cpu_ns);
	put_place(j, t);
	json_wait(j, &t->wait);
	json_object_end(j);
}

/* What is to be said of several processes is said once. */
static void put_notes(struct json *j, const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks)
{
	_cleanup_(notes_deinit) struct notes all = {0};

	for (size_t i = 0; i < n; i++) {
		notes_add_all(&all, &traces[i]->snap->notes);
		notes_add_all(&all, &traces[i]->notes);
	}
	if (why_limits(traces, n))
		notes_add(&all, "%s", why_limits(traces, n));
	if (deadlocks_doubt(deadlocks))
		notes_add(&all, "%s", deadlocks_doubt(deadlocks));
	json_array(j, "notes");
	for (size_t i = 0; i < all.len; i++)
		json_string(j, NULL, all.data[i]);
	json_array_end(j);
}

int report_why_json(const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks, const struct report_options *options,
		    FILE *out)
{
	struct json j = {.out = out};

	report_begin();
	json_object(&j, NULL);
	json_string(&j, "schema", schema);
	json_array(&j, "processes");
	for (size_t i = 0; i < n; i++)
		put_process(&j, traces[i]->snap);
	json_array_end(&j);
	json_deadlocks(&j, deadlocks, NULL, true);
	json_bool(&j, "maybe_more_deadlocks", deadlocks->maybe_more);
	json_array(&j, "threads");
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i]->threads.len; k++)
			put_thread(&j, &traces[i]->threads.data[k]);
	json_array_end(&j);
	put_notes(&j, traces, n, deadlocks);
	json_object_end(&j);
	fputc('\n', out);
	return report_flush(out);
}
