/* SPDX-License-Identifier: MIT */
#include "report/offcpu_text.h"

#include <inttypes.h>
#include <string.h>

#include "report/names.h"
#include "report/text_frame.h"
#include "report/wait_words.h"

enum { SHOWN_STACKS = 50, SHOWN_WAKERS = 3, MOST_LOOKS = 3 };

static void put_state(const struct offcpu_text *r, char state)
{
	enum style style = state == 'R' ? STYLE_GOOD : state == 'D' ? STYLE_BAD : STYLE_PLAIN;

	if (style != STYLE_PLAIN)
		text_style(&r->text, style);
	fprintf(r->text.out, "%c %s", state > ' ' && state < 0x7f ? state : '?',
		state == 'R' ? "waiting for a CPU" : name_thread_state(state));
	if (style != STYLE_PLAIN)
		text_style(&r->text, STYLE_PLAIN);
}

/* Of rows of programs. */
static size_t count_threads(const struct offcpu_group *group)
{
	size_t n = 0;

	for (size_t i = 0; i < group->nmembers; i++)
		n += group->members[i].nthreads;
	return n;
}

static void put_threads_of(const struct offcpu_text *r, const struct offcpu_group *group)
{
	const struct offcpu_row *row = group->row;

	if (group->nmembers > 1) {
		offcpu_put_program(r, &(struct offcpu_who){.pid = group->members[0].pid,
							   .start_ns = group->members[0].start_ns,
							   .name = row->thread_name},
				   group->nmembers, count_threads(group));
		return;
	}
	if (group->nthreads == 1) {
		offcpu_put_who(r, &(struct offcpu_who){.pid = row->pid,
						       .start_ns = row->process_start_ns,
						       .tid = row->tid,
						       .nth = row->nth,
						       .name = row->thread_name,
						       .columns = r->options->width * 2 / 3});
		if (count_threads(group) > 1)
			fprintf(r->text.out, ", %zu threads", count_threads(group));
		return;
	}
	text_style(&r->text, STYLE_STRONG);
	fprintf(r->text.out, "%zu threads", group->nthreads);
	text_style(&r->text, STYLE_PLAIN);
	if (group->nprocesses > 1)
		fprintf(r->text.out, " of %zu processes", group->nprocesses);
	else if (row->pid != r->pid)
		fprintf(r->text.out, " of pid %d", row->pid);
}

/* Two lines, since one would be too long for many terminals. */
static void put_head(const struct offcpu_text *r, const struct offcpu_group *group)
{
	const struct offcpu_row *row = group->row;
	const struct offcpu_sum *sum = &group->sum;
	char time[DURATION_LEN], share[SHARE_LEN];
	FILE *out = r->text.out;

	fputc('\n', out);
	text_style(&r->text, STYLE_STRONG);
	fputs(offcpu_format_wait(sum->total_ns, time), out);
	text_style(&r->text, STYLE_PLAIN);
	fprintf(out, "  %s  ", offcpu_format_share(sum->total_ns, r->profile->total.total_ns, share));
	put_threads_of(r, group);
	fputs("  ", out);
	put_state(r, row->state);
	if (row->cause != OFFCPU_CAUSE_CPU && row->cause != OFFCPU_CAUSE_OTHER)
		fprintf(out, ", %s", offcpu_cause_name(row->cause));
	fputs(group->idle ? "  [idle]\n" : "\n", out);
	fputs("  ", out);
	if (group->nthreads > 1) {
		offcpu_put_members(r, group->threads, group->nthreads, !group->alike);
		fputs("\n  ", out);
	}
	if (group->nmembers > 1) {
		offcpu_put_processes(r, group->members, group->nmembers);
		fputs("\n  ", out);
	}
	offcpu_put_waits(out, sum, &group->quantiles);
	if (sum->runnable_ns && row->state != 'R')
		fprintf(out, ", %s of it waiting for a CPU", offcpu_format_wait(sum->runnable_ns, time));
	if (group->nplaces > 1)
		fprintf(out, ", at %zu places in these functions", group->nplaces);
	fputc('\n', out);
}

static struct frame_format frame_format(const struct offcpu_text *r, const char *indent)
{
	return (struct frame_format){
		.verbose = r->options->verbose,
		.no_addresses = r->options->no_addresses,
		.indent = indent,
		.width = r->options->width,
	};
}

/* How the kernel wakes a thread, whoever it is and whatever it waits for. */
static bool is_wake_up(const char *symbol)
{
	static const char *const names[] = {"try_to_wake_up",       "default_wake_function", "autoremove_wake_function",
					    "woken_wake_function",  "__wake_up",             "__wake_up_common",
					    "__wake_up_common_lock", "__wake_up_sync_key",   "__wake_up_sync",
					    "wake_up_process",      "wake_up_state",         "wake_up_q",
					    "pollwake",             "ep_autoremove_wake_function"};
	const size_t len = symbol ? strcspn(symbol, ".") : 0; /* "__wake_up_common.isra.0" */

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (len && strlen(names[i]) == len && strncmp(symbol, names[i], len) == 0)
			return true;
	return false;
}

/* A waker's stack from where it says something: the innermost frames are nearly the same for all. */
static struct stack without_wake_up(const struct stack *stack)
{
	size_t skip = 0;

	while (skip + 1 < stack->len && is_wake_up(stack->data[skip].symbol))
		skip++;
	return (struct stack){.data = stack->data + skip, .len = stack->len - skip};
}

static bool put_kernel_stack(const struct offcpu_text *r, const char *indent, const struct stack *stack)
{
	const struct frame_format format = frame_format(r, indent);

	text_kernel_stack(&r->text, &format, stack);
	return stack && stack->len;
}

static bool put_user_stack(const struct offcpu_text *r, const char *indent, const struct stack *stack)
{
	const struct frame_format format = frame_format(r, indent);

	text_user_stack(&r->text, &format, stack);
	return stack && stack->len;
}

/* Why there is no stack, or why it ends here. */
static void put_end(const struct offcpu_text *r, const char *indent, bool has_frames, const char *what, const char *why)
{
	if (!why)
		return;
	text_style(&r->text, has_frames ? STYLE_BAD : STYLE_DIM);
	if (has_frames)
		fprintf(r->text.out, "%s  -- %s ends here: ", indent, what);
	else
		fprintf(r->text.out, "%s  -- no %s: ", indent, what);
	text_untrusted(&r->text, why);
	text_style(&r->text, STYLE_PLAIN);
	fputc('\n', r->text.out);
}

static void put_woken(const struct offcpu_text *r, const struct offcpu_sum *sum)
{
	char time[DURATION_LEN];

	fprintf(r->text.out, " (%" PRIu64 " %s, %s)\n", sum->count, sum->count == 1 ? "wait" : "waits",
		offcpu_format_wait(sum->total_ns, time));
}

static void put_waker(const struct offcpu_text *r, const struct offcpu_part *waker, bool alone)
{
	const struct offcpu_row *row = waker->row;
	struct stack cut = {0};
	bool kernel, user;

	if (row->has_waker) {
		fputs("  woken by ", r->text.out);
		if (row->waker.tid)
			offcpu_put_who(r, &(struct offcpu_who){
						  .pid = row->waker.pid, .tid = row->waker.tid, .name = row->waker.name});
		else if (row->waker.interrupt)
			fputs("an interrupt", r->text.out);
		else
			fprintf(r->text.out, "a thread %s", row->waker.name);
	} else if (!alone) {
		fputs(waker->sum.unfinished == waker->sum.count ? "  not woken yet" : "  waker not known", r->text.out);
	}
	if (!alone)
		put_woken(r, &waker->sum);
	else if (row->has_waker)
		fputc('\n', r->text.out);
	if (row->waker.kernel)
		cut = r->options->verbose ? *row->waker.kernel : without_wake_up(row->waker.kernel);
	kernel = put_kernel_stack(r, "  ", &cut);
	put_end(r, "  ", kernel, "kernel stack", row->waker.kernel_error);
	user = put_user_stack(r, "  ", row->waker.user);
	put_end(r, "  ", user, "user stack", row->waker.user_error);
}

/* A timer interrupt hits whatever thread is running: there may be many, and only the first few are of interest. */
static void put_wakers(const struct offcpu_text *r, const struct offcpu_group *group)
{
	const size_t n = r->options->verbose || group->nwakers < SHOWN_WAKERS ? group->nwakers : SHOWN_WAKERS;
	struct offcpu_sum rest = {0};

	for (size_t i = 0; i < n; i++)
		put_waker(r, &group->wakers[i], group->nwakers == 1);
	for (size_t i = n; i < group->nwakers; i++)
		offcpu_sum_merge(&rest, &group->wakers[i].sum);
	if (!rest.count)
		return;
	fprintf(r->text.out, "  woken by %zu more", group->nwakers - n);
	put_woken(r, &rest);
}

/*
 * "  now: waits for mutex m, held by tid 812 worker": of the members of a group whose waits are not over, each thing once.
 */
static void put_looks(const struct offcpu_text *r, const struct offcpu_group *group)
{
	const struct trace_thread *told[MOST_LOOKS];
	size_t n = 0;

	for (size_t i = 0; i < group->nthreads; i++) {
		const struct trace_thread *t = offcpu_profile_look(r->profile, group->threads[i].row, &group->threads[i].sum);
		bool known = !t;

		for (size_t k = 0; !known && k < n; k++)
			known = wait_compare(told[k], t) == 0;
		if (known)
			continue;
		if (n == MOST_LOOKS) {
			fputs("  …\n", r->text.out);
			return;
		}
		told[n++] = t;
		fputs("  now: ", r->text.out);
		wait_put_doing(&r->text, &t, 1);
		wait_put_holder(&r->text, &t, 1, (const struct trace *const *)r->profile->looks.data, r->profile->looks.len);
		fputc('\n', r->text.out);
	}
}

static void put_group(const struct offcpu_text *r, const struct offcpu_group *group)
{
	const struct offcpu_row *row = group->row;
	bool kernel, user;

	put_head(r, group);
	put_looks(r, group);
	kernel = put_kernel_stack(r, "", row->kernel);
	put_end(r, "", kernel, "kernel stack", row->kernel_error);
	user = put_user_stack(r, "", row->user);
	put_end(r, "", user, "user stack", row->user_error);
	if (!kernel && !user && !row->kernel_error && !row->user_error)
		put_end(r, "", false, "stack", "none was taken");
	put_wakers(r, group);
}

void offcpu_put_groups(const struct offcpu_text *r)
{
	const struct offcpu_groups *groups = &r->groups;
	const size_t n = offcpu_shown(r, SHOWN_STACKS, groups->len);
	uint64_t rest_ns = 0, hidden_ns = 0;
	size_t done = 0, rest = 0, hidden = 0;

	for (size_t i = 0; i < groups->len; i++) {
		const struct offcpu_group *group = &groups->data[i];

		if (group->idle && r->options->hide_idle) {
			hidden++;
			hidden_ns += group->sum.total_ns;
		} else if (done < n) {
			put_group(r, group);
			done++;
		} else {
			rest++;
			rest_ns += group->sum.total_ns;
		}
	}
	if (rest || hidden)
		fputc('\n', r->text.out);
	offcpu_put_rest(r, rest, "more stack", "more stacks", rest_ns, ": -v shows all");
	offcpu_put_rest(r, hidden, "idle stack hidden", "idle stacks hidden", hidden_ns, "");
}
