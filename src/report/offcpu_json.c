/* SPDX-License-Identifier: MIT */
#include "report/offcpu.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "report/container.h"
#include "report/json_frame.h"
#include "report/json_wait.h"
#include "report/json_writer.h"
#include "report/offcpu_reasons.h"
#include "report/offcpu_totals.h"
#include "report/report.h"

/* docs/schema/offcpu.schema.json and offcpu-events.schema.json describe these documents. */
static const char schema[] = "stakeout.offcpu/1";
static const char events_schema[] = "stakeout.offcpu-events/2";

enum { TOP_THREADS = 10 };

static void put_tid(struct json *j, pid_t tid)
{
	if (tid)
		json_int(j, "tid", tid);
	else
		json_null(j, "tid");
}

enum { KEY_LEN = 48 };

/* The key of a thread in thread_stats. A later thread with the same pid and tid has its own key. */
static void format_key(char key[KEY_LEN], pid_t pid, pid_t tid, unsigned nth)
{
	int len = snprintf(key, KEY_LEN, "%d:%d", pid, tid);

	if (nth > 1)
		snprintf(key + len, KEY_LEN - (size_t)len, "#%u", nth);
}

static void put_key(struct json *j, pid_t pid, pid_t tid, unsigned nth)
{
	char key[KEY_LEN];

	format_key(key, pid, tid, nth);
	json_string(j, "thread", tid ? key : NULL);
}

/* Which waits are recorded at all. */
static void put_filter(struct json *j, const struct offcpu_filter *filter)
{
	json_uint(j, "min_ns", filter->min_ns);
	if (filter->max_ns == UINT64_MAX)
		json_null(j, "max_ns");
	else
		json_uint(j, "max_ns", filter->max_ns);
	json_array(j, "states");
	if (filter->sleeping)
		json_string(j, NULL, "S");
	if (filter->uninterruptible)
		json_string(j, NULL, "D");
	if (filter->runnable)
		json_string(j, NULL, "R");
	json_array_end(j);
}

static void put_lost(struct json *j, const struct offcpu_profile *profile)
{
	json_object(j, "lost");
	for (size_t i = 0; i < profile->losses.len; i++)
		json_uint(j, profile->losses.data[i].name, profile->losses.data[i].count);
	json_object_end(j);
}

static void put_notes(struct json *j, const struct offcpu_profile *profile)
{
	json_array(j, "notes");
	for (size_t i = 0; i < profile->notes.len; i++)
		json_string(j, NULL, profile->notes.data[i]);
	json_array_end(j);
}

static void put_incomplete(struct json *j, const struct offcpu_reasons *reasons)
{
	static const char *const kinds[OFFCPU_STACK_KINDS] = {
		[OFFCPU_USER_STACK] = "user_stack",
		[OFFCPU_KERNEL_STACK] = "kernel_stack",
		[OFFCPU_WAKER_USER_STACK] = "waker_user_stack",
		[OFFCPU_WAKER_KERNEL_STACK] = "waker_kernel_stack",
	};

	json_array(j, "incomplete");
	for (size_t i = 0; i < reasons->len; i++) {
		const struct offcpu_reason *reason = &reasons->data[i];

		json_object(j, NULL);
		json_string(j, "what", kinds[reason->kind]);
		json_string(j, "reason", reason->words);
		json_uint(j, "waits", reason->waits);
		json_uint(j, "total_ns", reason->total_ns);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_total(struct json *j, const struct offcpu_profile *profile)
{
	const struct offcpu_sum *total = &profile->total;

	json_uint(j, "total_time_ns", total->total_ns);
	json_uint(j, "total_events", total->count);
	json_uint(j, "unfinished_events", total->unfinished);
	json_uint(j, "avg_time_ns", offcpu_average(total));
	json_uint(j, "max_time_ns", total->max_ns);
	json_uint(j, "min_time_ns", total->min_ns);
}

/* The total, split by the state in which threads waited, and how much of it was idle. */
static void put_shares(struct json *j, const struct offcpu_profile *profile, bool hide_idle)
{
	const struct offcpu_totals totals = offcpu_totals(profile);

	json_uint(j, "sleeping_time_ns", totals.sleeping_ns);
	json_uint(j, "uninterruptible_time_ns", totals.uninterruptible_ns);
	json_uint(j, "runnable_time_ns", totals.runnable_ns);
	json_object(j, "idle");
	json_uint(j, "stacks", totals.idle_rows);
	json_uint(j, "count", totals.idle_count);
	json_uint(j, "total_ns", totals.idle_ns);
	json_bool(j, "hidden", hide_idle);
	json_object_end(j);
	json_array(j, "causes");
	for (enum offcpu_cause cause = 0; cause < OFFCPU_CAUSES; cause++) {
		json_object(j, NULL);
		json_string(j, "cause", offcpu_cause_name(cause));
		json_uint(j, "count", totals.causes[cause].count);
		json_uint(j, "total_ns", totals.causes[cause].total_ns);
		json_uint(j, "idle_ns", totals.causes[cause].idle_ns);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_top_threads(struct json *j, const struct offcpu_profile *profile, bool hide_idle)
{
	size_t n = 0;

	json_array(j, "top_blocking_threads");
	for (size_t i = 0; i < profile->threads.len && n < TOP_THREADS; i++) {
		const struct offcpu_thread *thread = &profile->threads.data[i];

		if (hide_idle && offcpu_only_idles(thread))
			continue;
		n++;
		json_object(j, NULL);
		json_int(j, "pid", thread->pid);
		json_int(j, "tid", thread->tid);
		put_key(j, thread->pid, thread->tid, thread->nth);
		json_string(j, "thread_name", thread->name);
		json_thousandths(j, "time_ms", thread->sum.total_ns / 1000);
		json_thousandths(j, "percentage", offcpu_share(thread->sum.total_ns, profile->total.total_ns));
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_thread(struct json *j, const struct offcpu_thread *thread)
{
	char key[KEY_LEN];

	format_key(key, thread->pid, thread->tid, thread->nth);
	json_object(j, key);
	json_string(j, "thread_name", thread->name);
	json_uint(j, "count", thread->sum.count);
	json_uint(j, "unfinished", thread->sum.unfinished);
	json_uint(j, "total_time_ns", thread->sum.total_ns);
	json_uint(j, "avg_time_ns", offcpu_average(&thread->sum));
	json_uint(j, "max_time_ns", thread->sum.max_ns);
	json_uint(j, "min_time_ns", thread->sum.min_ns);
	json_uint(j, "sleeping_time_ns", thread->sleeping_ns);
	json_uint(j, "uninterruptible_time_ns", thread->uninterruptible_ns);
	json_uint(j, "runnable_time_ns", thread->runnable_ns);
	json_uint(j, "idle_time_ns", thread->idle_ns);
	if (thread->elapsed_ns) {
		json_uint(j, "on_cpu_time_ns", thread->on_cpu_ns);
		json_uint(j, "elapsed_time_ns", thread->elapsed_ns);
	} else {
		json_null(j, "on_cpu_time_ns");
		json_null(j, "elapsed_time_ns");
	}
	json_object_end(j);
}

static void put_who(struct json *j, const struct offcpu_row *row)
{
	const char state[] = {row->state && strchr("SDR", row->state) ? row->state : '?', '\0'};

	if (row->program && !row->pid)
		json_null(j, "pid");
	else
		json_int(j, "pid", row->pid);
	put_tid(j, row->tid);
	json_string(j, "thread_name", row->thread_name);
	json_string(j, "state", state);
}

static void put_waker(struct json *j, const struct offcpu_waker *waker)
{
	json_int(j, "pid", waker->pid);
	json_int(j, "tid", waker->tid);
	json_string(j, "thread_name", waker->name);
}

static void put_where(struct json *j, const struct offcpu_row *row)
{
	const struct offcpu_waker *waker = &row->waker;

	json_stack(j, "kernel_stack", row->kernel, NULL);
	json_string(j, "kernel_stack_error", row->kernel_error);
	json_stack(j, "user_stack", row->user, NULL);
	json_string(j, "user_stack_error", row->user_error);
	if (!row->has_waker) {
		json_null(j, "waker");
		return;
	}
	json_object(j, "waker");
	put_waker(j, waker);
	json_stack(j, "kernel_stack", waker->kernel, NULL);
	json_string(j, "kernel_stack_error", waker->kernel_error);
	json_stack(j, "user_stack", waker->user, NULL);
	json_string(j, "user_stack_error", waker->user_error);
	json_object_end(j);
}

static void put_quantile(struct json *j, const char *key, const struct offcpu_quantiles *quantiles, uint64_t ns)
{
	if (quantiles->are_known)
		json_uint(j, key, ns);
	else
		json_null(j, key);
}

enum { MAX_PIDS = 64 };

/* Of a row of a program: whose waits it has. */
static void put_members(struct json *j, const struct offcpu_profile *profile, const struct offcpu_row *row)
{
	const struct offcpu_member *members = profile->members.data + row->first_member;
	uint64_t threads = 0;

	if (!row->program)
		return;
	for (size_t i = 0; i < row->nmembers; i++)
		threads += members[i].nthreads;
	json_uint(j, "processes", row->nmembers);
	json_uint(j, "threads", threads);
	json_array(j, "pids");
	for (size_t i = 0; i < row->nmembers && i < MAX_PIDS; i++)
		json_int(j, NULL, members[i].pid);
	json_array_end(j);
}

static void put_processes(struct json *j, const struct offcpu_profile *profile)
{
	json_array(j, "processes");
	for (size_t i = 0; i < profile->processes.len; i++) {
		const struct offcpu_identity *process = &profile->processes.data[i];

		json_object(j, NULL);
		json_int(j, "pid", process->pid);
		json_string(j, "name", process->name);
		json_string(j, "program", process->file);
		json_string(j, "cmdline", process->command_line);
		container_json(j, process->inner_pid, &process->container);
		json_object_end(j);
	}
	json_array_end(j);
}

/* What it waits for, if one of its waits is not over. */
static void put_look(struct json *j, const struct offcpu_profile *profile, const struct offcpu_row *row)
{
	const struct trace_thread *t = offcpu_profile_look(profile, row, &row->sum);

	if (t)
		json_wait(j, &t->wait);
	else
		json_null(j, "waits_for");
}

static void put_row(struct json *j, const struct offcpu_profile *profile, const struct offcpu_row *row,
		    const struct offcpu_quantiles *quantiles)
{
	json_object(j, NULL);
	put_who(j, row);
	put_key(j, row->pid, row->tid, row->nth);
	put_members(j, profile, row);
	json_uint(j, "count", row->sum.count);
	json_uint(j, "unfinished", row->sum.unfinished);
	json_uint(j, "total_ns", row->sum.total_ns);
	json_uint(j, "max_ns", row->sum.max_ns);
	json_uint(j, "min_ns", row->sum.min_ns);
	put_quantile(j, "p50_ns", quantiles, quantiles->p50_ns);
	put_quantile(j, "p99_ns", quantiles, quantiles->p99_ns);
	json_uint(j, "runnable_ns", row->sum.runnable_ns);
	json_string(j, "cause", offcpu_cause_name(row->cause));
	json_bool(j, "idle", row->idle);
	put_look(j, profile, row);
	put_where(j, row);
	json_object_end(j);
}

/* False when memory is exhausted. */
static bool put_rows(struct json *j, const struct offcpu_profile *profile, bool hide_idle)
{
	_cleanup_(offcpu_lengths_deinit) struct offcpu_lengths lengths = {0};
	struct offcpu_quantiles quantiles;
	bool ok = true;

	json_array(j, "stacks");
	for (size_t i = 0; ok && i < profile->rows.len; i++) {
		const struct offcpu_row *row = &profile->rows.data[i];

		if (row->idle && hide_idle)
			continue;
		ok = offcpu_gather_lengths(&lengths, profile, row);
		quantiles = offcpu_take_quantiles(&lengths, &row->sum);
		put_row(j, profile, row, &quantiles);
	}
	json_array_end(j);
	return ok;
}

int report_offcpu_json(const struct offcpu_profile *profile, const struct offcpu_report_options *options, FILE *out)
{
	_cleanup_(lacking_deinit) struct lacking lacking = {0};
	_cleanup_(offcpu_reasons_deinit) struct offcpu_reasons reasons = {0};
	struct json j = {.out = out};

	if (!lacking_find_offcpu(&lacking, profile, options->hide_idle) || !offcpu_reasons_find(&reasons, profile))
		return -ENOMEM;
	report_begin();
	json_object(&j, NULL);
	json_string(&j, "schema", schema);
	json_time(&j, "start_time", profile->start_ns);
	json_string(&j, "method", profile->method);
	json_bool(&j, "estimate", profile->estimate);
	json_uint(&j, "duration_ns", profile->duration_ns);
	put_filter(&j, &profile->filter);
	put_notes(&j, profile);
	put_lost(&j, profile);
	put_incomplete(&j, &reasons);
	put_total(&j, profile);
	put_shares(&j, profile, options->hide_idle);
	put_top_threads(&j, profile, options->hide_idle);
	json_object(&j, "thread_stats");
	for (size_t i = 0; i < profile->threads.len; i++)
		put_thread(&j, &profile->threads.data[i]);
	json_object_end(&j);
	put_processes(&j, profile);
	if (!put_rows(&j, profile, options->hide_idle))
		return -ENOMEM;
	json_lacking(&j, &lacking);
	json_object_end(&j);
	fputc('\n', out);
	return report_flush(out);
}

static void begin_line(struct json *j, const char *type)
{
	json_object(j, NULL);
	json_string(j, "type", type);
}

static void end_line(struct json *j)
{
	json_object_end(j);
	fputc('\n', j->out);
}

int report_offcpu_events_begin(const struct offcpu_profile *profile, FILE *out)
{
	struct json j = {.out = out};

	report_begin();
	begin_line(&j, "begin");
	json_string(&j, "schema", events_schema);
	json_time(&j, "start_time", profile->start_ns);
	json_string(&j, "method", profile->method);
	json_bool(&j, "estimate", profile->estimate);
	put_filter(&j, &profile->filter);
	end_line(&j);
	return report_flush(out);
}

void offcpu_event_stacks_deinit(struct offcpu_event_stacks *stacks)
{
	vec_deinit(&stacks->all);
	chains_deinit(&stacks->by_content);
}

static uint64_t hash_stack(const struct offcpu_event_stack *stack)
{
	return hash_u64(hash_u64(hash_u64(hash_u64(HASH_SEED, (uintptr_t)stack->kernel), (uintptr_t)stack->user),
				 (uintptr_t)stack->kernel_error),
			(uintptr_t)stack->user_error);
}

static bool is_same_stack(const struct offcpu_event_stack *a, const struct offcpu_event_stack *b)
{
	return a->kernel == b->kernel && a->user == b->user && a->kernel_error == b->kernel_error &&
	       a->user_error == b->user_error;
}

static void put_stack(const struct offcpu_event_stack *stack, size_t number, FILE *out)
{
	struct json j = {.out = out};

	begin_line(&j, "stack");
	json_uint(&j, "stack", number);
	json_stack(&j, "kernel_stack", stack->kernel, NULL);
	json_string(&j, "kernel_stack_error", stack->kernel_error);
	json_stack(&j, "user_stack", stack->user, NULL);
	json_string(&j, "user_stack_error", stack->user_error);
	end_line(&j);
}

/* The number of a stack, with a line of its own when it is new; 0: memory is exhausted. */
static size_t number_of(struct offcpu_event_stacks *stacks, const struct offcpu_event_stack *stack, FILE *out)
{
	const uint64_t hash = hash_stack(stack);

	for (size_t i = chains_first(&stacks->by_content, hash); i; i = chains_next(&stacks->by_content, i))
		if (is_same_stack(&stacks->all.data[i - 1], stack))
			return i;
	if (!vec_reserve(&stacks->all, stacks->all.len + 1) || !chains_add(&stacks->by_content, hash))
		return 0;
	vec_push(&stacks->all, *stack);
	put_stack(stack, stacks->all.len, out);
	return stacks->all.len;
}

int report_offcpu_event(struct offcpu_event_stacks *stacks, const struct offcpu_event *event, FILE *out)
{
	const struct offcpu_row *what = event->what;
	const struct offcpu_waker *waker = &what->waker;
	const struct offcpu_event_stack own = {what->kernel, what->user, what->kernel_error, what->user_error};
	const struct offcpu_event_stack wakers = {waker->kernel, waker->user, waker->kernel_error, waker->user_error};
	size_t stack, waker_stack = 0;
	struct json j = {.out = out};

	report_begin();
	stack = number_of(stacks, &own, out);
	if (what->has_waker)
		waker_stack = number_of(stacks, &wakers, out);
	if (!stack || (what->has_waker && !waker_stack))
		return -ENOMEM;
	begin_line(&j, "wait");
	json_time(&j, "time", event->time_ns);
	json_uint(&j, "duration_ns", event->duration_ns);
	json_uint(&j, "runnable_ns", event->runnable_ns);
	json_bool(&j, "unfinished", event->unfinished);
	put_who(&j, what);
	json_uint(&j, "stack", stack);
	if (what->has_waker) {
		json_object(&j, "waker");
		put_waker(&j, waker);
		json_uint(&j, "stack", waker_stack);
		json_object_end(&j);
	} else {
		json_null(&j, "waker");
	}
	end_line(&j);
	return report_status(out);
}

int report_offcpu_events_end(const struct offcpu_profile *profile, FILE *out)
{
	struct json j = {.out = out};

	report_begin();
	begin_line(&j, "end");
	json_uint(&j, "duration_ns", profile->duration_ns);
	put_notes(&j, profile);
	put_lost(&j, profile);
	put_total(&j, profile);
	end_line(&j);
	return report_flush(out);
}
