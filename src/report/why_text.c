/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "report/descriptor_words.h"
#include "report/shorten.h"
#include "report/state_words.h"
#include "report/text_frame.h"
#include "report/text_summary.h"
#include "report/text_syscall.h"
#include "report/text_table.h"
#include "report/times.h"
#include "report/wait_words.h"
#include "report/why.h"
#include "report/why_words.h"

enum {
	MOST_LINKS = 8,	  /* of a chain */
	MOST_PLACES = 3,  /* where threads of a group are, */
	MOST_NUMBERS = 8, /* and their numbers */
};

void why_put_thread(const struct why_report *r, const struct trace_thread *t)
{
	fprintf(r->text.out, "tid %d ", (int)t->thread->tid);
	text_style(&r->text, STYLE_STRONG);
	text_untrusted(&r->text, trace_thread_name(t));
	text_style(&r->text, STYLE_PLAIN);
	if (r->n > 1) {
		fputs(" of ", r->text.out);
		wait_put_process(&r->text, t->snap->pid, t->snap->comm);
	}
}

/* The first thread of a process that is looked at, too; NULL: it is not. */
static const struct trace_thread *find_process(const struct why_report *r, pid_t pid)
{
	for (size_t i = 0; pid && i < r->n; i++)
		for (size_t k = 0; r->traces[i]->snap->pid == pid && k < r->traces[i]->threads.len; k++)
			if (r->traces[i]->threads.data[k].thread->tid == pid)
				return &r->traces[i]->threads.data[k];
	return NULL;
}

/* "waits for …", "runs", "is in read(fd=7)": what threads do. */
void why_put_doing(const struct why_report *r, const struct trace_thread *const *members, size_t count)
{
	const struct trace_thread *t = members[0];
	const bool several = count > 1;
	FILE *out = r->text.out;

	if (state_has_words(t)) {
		state_put_doing(&r->text, members, count, find_process(r, state_only_child(&t->wait)));
	} else if (t->wait.kind) {
		wait_put_doing(&r->text, members, count);
		state_put_limit(&r->text, members, count);
	} else if (t->thread->syscall.state == SYSCALL_IN) {
		fputs(several ? "are in " : "is in ", out);
		text_style(&r->text, STYLE_CALL);
		text_syscall(&r->text, members, 1, 0);
		text_style(&r->text, STYLE_PLAIN);
	} else {
		fputs(several ? "are: " : "is: ", out);
		text_state(&r->text, t->thread, 0);
	}
}

static size_t count_others(const struct trace_thread *const *members, size_t count)
{
	size_t others = 0;

	for (size_t i = 1; i < count; i++)
		others += wait_compare(members[i - 1], members[i]) != 0;
	return others;
}

void why_put_others(const struct text *text, const struct trace_thread *const *members, size_t count)
{
	const size_t others = count_others(members, count);

	if (others)
		fprintf(text->out, " and %zu other%s like it", others, others == 1 ? "" : "s");
}

/* The chain, unless they wait for several things that have no owners; and how many these are. Of several with owners the first one's is told. */
static void put_chain_or_others(const struct why_report *r, const struct trace_thread *const *members, size_t count)
{
	const size_t others = count_others(members, count);

	if (!others || wait_has_owner(&members[0]->wait))
		why_put_chain(r, members, others ? 1 : count);
	if (others && wait_has_owner(&members[0]->wait))
		fprintf(r->text.out, "; and for %zu other%s held in the same way", others, others == 1 ? "" : "s");
	else
		why_put_others(&r->text, members, count);
}

/* ", held by tid 812 worker-3, which waits for …, held by …": as far as it is known. */
void why_put_chain(const struct why_report *r, const struct trace_thread *const *members, size_t count)
{
	const struct trace_thread *t = members[0], *told[MOST_LINKS];

	for (size_t links = 0; links < MOST_LINKS; links++) {
		const struct trace_thread *child = find_process(r, state_only_child(&t->wait));
		const struct trace_thread *owner = child ? child : wait_find_owner(&t->wait, r->traces, r->n);

		told[links] = t;

		wait_put_holder(&r->text, links ? &t : members, links ? 1 : count, r->traces, r->n);
		if (!owner || owner == t || (owner->thread->state == 'R' && !child))
			return; /* that was said */
		if (deadlocks_with(r->deadlocks, owner)) {
			fputs(", which is in the deadlock", r->text.out);
			return;
		}
		for (size_t i = 0; i <= links; i++)
			if (told[i] == owner) {
				fputs(", which seems to wait for that in turn", r->text.out);
				return;
			}
		fputs(", which ", r->text.out);
		why_put_doing(r, &owner, 1);
		t = owner;
	}
	fputs(", …", r->text.out);
}

static size_t count_processes(const struct deadlock *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->len; i++) {
		bool known = false;

		for (size_t k = 0; k < i; k++)
			known |= d->data[k]->snap == d->data[i]->snap;
		n += !known;
	}
	return n;
}

void why_put_headline(const struct text *text, const struct deadlock *d)
{
	const size_t processes = count_processes(d);

	text_style(text, STYLE_BAD);
	fputs(d->likely ? "DEADLOCK, most likely" : "DEADLOCK", text->out);
	text_style(text, STYLE_PLAIN);
	if (d->len == 1)
		fputs(": a thread waits for itself", text->out);
	else if (processes == 1)
		fprintf(text->out, ": %zu threads wait for each other", d->len);
	else
		fprintf(text->out, ": %zu threads of %zu processes wait for each other", d->len, processes);
	if (d->likely)
		fputs(d->len == 1 ? ", if it has not let go of the lock in its with block" : ", if none has let go of a lock in its with block", text->out);
}

static int64_t time_blocked(const struct snap_thread *thread)
{
	return thread->state == 'S' || thread->state == 'D' ? thread->off_cpu_ns : -1;
}

/* Since they last ran: who gets up from time to time, to look whether there is something new, has done so then. */
static void put_since(const struct why_report *r, const struct trace_thread *const *members, size_t count)
{
	times_put(r->text.out, "; blocked for ", "", members, count, time_blocked);
}

/* Each of them with its stack. */
void why_put_deadlock(const struct why_report *r, const struct deadlock *d)
{
	const struct frame_format format = {
		.verbose = r->options->verbose, .no_addresses = !r->options->verbose, .indent = "  ", .width = r->options->width};
	FILE *out = r->text.out;

	fputc('\n', out);
	why_put_headline(&r->text, d);
	fputc('\n', out);
	for (size_t i = 0; i < d->len; i++) {
		const struct trace_thread *t = d->data[i];

		fputs("  ", out);
		why_put_thread(r, t);
		fputc(' ', out);
		wait_put_doing(&r->text, &t, 1);
		wait_put_holder(&r->text, &t, 1, r->traces, r->n);
		put_since(r, &t, 1);
		fputc('\n', out);
		text_user_stack(&r->text, &format, t->user);
	}
}

static bool is_same_place(const struct frame *a, const struct frame *b)
{
	if (!a || !b)
		return a == b;
	return same_text(a->symbol, b->symbol) && (a->symbol || a->module == b->module);
}

/* "handle", "?? (libfoo.so)", "??" */
static void put_place(const struct text *t, const struct frame *frame)
{
	text_untrusted(t, frame && frame->symbol ? frame->symbol : "??");
	if (!frame || frame->symbol || !frame->module || !frame->module->path)
		return;
	fputs(" (", t->out);
	text_untrusted(t, path_tail(frame->module->path, 1));
	fputc(')', t->out);
}

/* "  in main, handle, …": functions in which they are, each once. */
static void put_places(const struct why_report *r, const struct trace_thread *const *members, size_t count)
{
	const struct frame *shown[MOST_PLACES];
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		const struct frame *frame = text_table_frame(members[i]);
		bool known = false;

		for (size_t k = 0; k < n; k++)
			known |= is_same_place(shown[k], frame);
		if (known)
			continue;
		if (n == MOST_PLACES) {
			fputs(", …", r->text.out);
			break;
		}
		fputs(n ? ", " : "  in ", r->text.out);
		put_place(&r->text, frame);
		shown[n++] = frame;
	}
}

static void put_numbers(const struct why_report *r, const struct trace_thread *const *members, size_t count)
{
	fputs("  tid", r->text.out);
	for (size_t i = 0; i < count && i < MOST_NUMBERS; i++) {
		fprintf(r->text.out, " %d ", (int)members[i]->thread->tid);
		text_untrusted(&r->text, trace_thread_name(members[i]));
		fputs(i + 1 < count ? "," : "", r->text.out);
	}
	fputs(count > MOST_NUMBERS ? " …\n" : "\n", r->text.out);
}

/* Each descriptor that they wait for, of an epoll once. */
static void put_sets(const struct why_report *r, const struct trace_thread *const *members, size_t count)
{
	for (size_t i = 0; members[0]->wait.kind == WAIT_EVENTS && i < count; i++) {
		const struct snap_wait *on = members[i]->wait.on;
		const bool is_same = i && members[i]->snap == members[i - 1]->snap && on->on.fd >= 0 && on->on.fd == members[i - 1]->wait.on->on.fd;

		if (!is_same)
			descriptor_put_set(&r->text, members[i], "    ");
	}
}

static void put_group(const struct why_report *r, const struct why_groups *groups, const struct why_group *group)
{
	const struct trace_thread *const *members = groups->members + group->first;

	fputc('\n', r->text.out);
	if (group->count == 1)
		why_put_thread(r, members[0]);
	else
		fprintf(r->text.out, "%zu threads", group->count);
	fputc(' ', r->text.out);
	why_put_doing(r, members, group->count);
	if (members[0]->wait.kind)
		put_chain_or_others(r, members, group->count);
	fputc('\n', r->text.out);
	if (r->options->verbose)
		put_sets(r, members, group->count);
	if (group->count > 1)
		put_numbers(r, members, group->count);
	put_places(r, members, group->count);
	put_since(r, members, group->count);
	fputc('\n', r->text.out);
}

int report_why_text(const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks, const struct report_options *options,
		    FILE *out)
{
	const struct why_report r = {.text = {.out = out, .color = options->color}, .options = options, .traces = traces, .n = n, .deadlocks = deadlocks};
	_cleanup_(why_groups_deinit) struct why_groups groups = {0};

	if (!why_groups_init(&groups, traces, n, deadlocks, !options->verbose))
		return -ENOMEM;
	report_begin();
	text_summary(&r.text, options, traces, n);
	if (why_limits(traces, n))
		text_note(&r.text, "", why_limits(traces, n));
	for (size_t i = 0; i < deadlocks->len; i++)
		why_put_deadlock(&r, &deadlocks->data[i]);
	for (size_t i = 0; i < groups.len; i++)
		put_group(&r, &groups, &groups.data[i]);
	if (deadlocks->maybe_more)
		fprintf(out, "\n%s\n", deadlocks_doubt(deadlocks));
	else if (!deadlocks->len)
		fputs("\nNo deadlock was found.\n", out);
	return report_flush(out);
}
