/* SPDX-License-Identifier: MIT */
#include "report/watch.h"

#include "base/cleanup.h"
#include "base/map.h"
#include "report/json_deadlock.h"
#include "report/json_frame.h"
#include "report/json_wait.h"
#include "report/json_writer.h"

/* docs/schema/watch.schema.json describes these lines. */
static const char schema[] = "stakeout.watch/1";

/* Hundredths of a percent, as a number of percents. */
static void put_share(struct json *j, const char *key, int64_t share)
{
	if (share < 0)
		json_null(j, key);
	else
		json_thousandths(j, key, (uint64_t)share * 10);
}

static void put_round_or_null(struct json *j, const char *key, uint32_t round)
{
	if (round)
		json_uint(j, key, round);
	else
		json_null(j, key);
}

static void put_beginning(struct json *j, const struct watch_log *w, const char *type)
{
	json_object(j, NULL);
	json_string(j, "schema", schema);
	json_string(j, "type", type);
	json_uint(j, "round", w->rounds);
	json_uint(j, "elapsed_ns", w->now_ns - w->begun_ns);
}

static void put_processes(struct json *j, const struct watch_log *w)
{
	json_array(j, "processes");
	for (size_t i = 0; i < w->processes.len; i++) {
		const struct watched_process *p = &w->processes.data[i];

		json_object(j, NULL);
		json_int(j, "pid", p->pid);
		json_string(j, "comm", p->comm);
		json_uint(j, "looks", p->looks);
		put_round_or_null(j, "ended_in_round", p->ended);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_who(struct json *j, const struct watched_thread *t)
{
	const char state[] = {t->last.state ? t->last.state : '?', '\0'};

	json_int(j, "pid", t->pid);
	json_int(j, "tid", t->tid);
	json_string(j, "name", t->name);
	json_string(j, "state", state);
}

static void put_step(struct json *j, const struct watched_thread *t)
{
	json_object(j, NULL);
	put_who(j, t);
	json_string(j, "step", watch_step_name(t->step));
	put_share(j, "cpu_percent", watch_step_cpu_share(t));
	json_string(j, "place", t->place);
	json_bool(j, "changed", t->step == WATCH_FIRST || watch_has_news(t));
	json_object_end(j);
}

static void put_deadlocks(struct json *j, const struct deadlocks *deadlocks)
{
	json_deadlocks(j, deadlocks, NULL, false);
	json_bool(j, "maybe_more_deadlocks", deadlocks && deadlocks->maybe_more);
}

static void put_notes(struct json *j, const struct notes *notes)
{
	json_array(j, "notes");
	for (size_t i = 0; i < notes->len; i++)
		json_string(j, NULL, notes->data[i]);
	json_array_end(j);
}

static void put_ended_now(struct json *j, const struct watch_log *w)
{
	json_array(j, "ended_threads");
	for (size_t i = 0; i < w->ended.len; i++) {
		const struct watched_thread *t = &w->ended.data[i];

		if (t->ended != w->rounds)
			continue;
		json_object(j, NULL);
		json_int(j, "pid", t->pid);
		json_int(j, "tid", t->tid);
		json_string(j, "name", t->name);
		json_string(j, "place", t->place);
		json_object_end(j);
	}
	json_array_end(j);
	json_uint(j, "ended_count", w->nended_now);
}

static int end_line(struct json *j)
{
	json_object_end(j);
	fputc('\n', j->out);
	return report_flush(j->out);
}

int report_watch_round_json(const struct watch_report *r, const struct report_options *options, FILE *out)
{
	const struct watch_log *w = r->watch;
	struct json j = {.out = out};

	report_begin();
	put_beginning(&j, w, "round");
	json_uint(&j, "skipped_looks", w->skipped_now);
	put_processes(&j, w);
	json_array(&j, "threads");
	for (size_t i = 0; i < w->threads.len; i++)
		if (w->threads.data[i].seen)
			put_step(&j, &w->threads.data[i]);
	json_array_end(&j);
	put_ended_now(&j, w);
	put_deadlocks(&j, r->fresh);
	put_notes(&j, &w->notes);
	return end_line(&j);
}

/* Each once: threads of one process with equal stacks share the named one. */
struct stacks {
	VEC_FIELDS(const struct stack *);
	struct u64map positions;
};

/* Its position in the list, or SIZE_MAX: there is none, or memory is exhausted. */
static size_t find_stack(struct stacks *stacks, const struct stack *stack)
{
	bool created;
	uint64_t *position = stack ? u64map_put(&stacks->positions, (uintptr_t)stack, &created) : NULL;

	if (!position)
		return SIZE_MAX;
	if (created)
		*position = vec_push(stacks, stack) ? stacks->len - 1 : SIZE_MAX;
	return (size_t)*position;
}

static void put_places(struct json *j, const struct watched_thread *t)
{
	json_array(j, "places");
	for (uint32_t i = 0; i < t->nplaces; i++) {
		json_object(j, NULL);
		json_string(j, "function", t->places[i].name);
		json_uint(j, "looks", t->places[i].looks);
		json_object_end(j);
	}
	json_array_end(j);
	json_uint(j, "other_looks", t->elsewhere);
}

static void put_counts(struct json *j, const struct watched_thread *t)
{
	json_uint(j, "looks", t->looks);
	json_uint(j, "born_in_round", t->born);
	put_round_or_null(j, "ended_in_round", t->ended);
	json_object(j, "steps");
	json_uint(j, "still", t->steps[WATCH_STILL]);
	json_uint(j, "returned", t->steps[WATCH_RETURNED]);
	json_uint(j, "ran", t->steps[WATCH_RAN]);
	json_object_end(j);
	json_uint(j, "still_at_the_end", t->still);
}

static void put_thread(struct json *j, const struct watched_thread *t, struct stacks *stacks)
{
	size_t stack = find_stack(stacks, t->traced ? t->traced->user : NULL);

	json_object(j, NULL);
	put_who(j, t);
	json_string(j, "verdict", watch_verdict_name(t->verdict));
	put_counts(j, t);
	put_share(j, "cpu_percent", watch_cpu_share(t));
	put_places(j, t);
	if (t->traced)
		json_wait(j, &t->traced->wait);
	else
		json_null(j, "waits_for");
	if (stack == SIZE_MAX)
		json_null(j, "stack");
	else
		json_uint(j, "stack", stack);
	json_object_end(j);
}

int report_watch_summary_json(const struct watch_report *r, const struct report_options *options, FILE *out)
{
	_cleanup_(notes_deinit) struct notes notes = {0};
	const struct watch_log *w = r->watch;
	struct json j = {.out = out};
	struct stacks stacks = {0};

	report_begin();
	put_beginning(&j, w, "summary");
	json_uint(&j, "interval_ns", w->interval_ns);
	json_uint(&j, "skipped_looks", w->skipped);
	json_uint(&j, "failed_looks", w->failed);
	json_bool(&j, "interrupted", w->interrupted);
	put_processes(&j, w);
	json_array(&j, "threads");
	for (size_t i = 0; i < w->threads.len; i++)
		put_thread(&j, &w->threads.data[i], &stacks);
	for (size_t i = 0; i < w->ended.len; i++)
		put_thread(&j, &w->ended.data[i], &stacks);
	json_array_end(&j);
	json_uint(&j, "born_count", w->nborn);
	json_uint(&j, "ended_count", w->nended);
	json_array(&j, "stacks");
	for (size_t i = 0; i < stacks.len; i++)
		json_stack(&j, NULL, stacks.data[i], NULL);
	json_array_end(&j);
	vec_deinit(&stacks);
	u64map_deinit(&stacks.positions);
	put_deadlocks(&j, r->deadlocks);
	notes_add_all(&notes, &w->all_notes);
	for (size_t i = 0; i < r->n; i++) { /* of names, each is told once, and forgotten by who has told it */
		notes_add_all(&notes, &r->traces[i]->snap->notes);
		notes_add_all(&notes, &r->traces[i]->notes);
	}
	put_notes(&j, &notes);
	return end_line(&j);
}
