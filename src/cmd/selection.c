/* SPDX-License-Identifier: MIT */
#include "cmd/selection.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

int selection_add_states(struct selection *selection, const char *text, struct err *err)
{
	static const char letters[] = "RSDTtZXIP";
	size_t len = strlen(selection->states);
	const char *p;

	for (p = text; *p; p++) {
		if (*p == ',' && p > text && p[-1] != ',' && p[1])
			continue;
		if (!strchr(letters, *p))
			break;
		if (!strchr(selection->states, *p))
			selection->states[len++] = *p;
	}
	if (*p || p == text)
		return err_set(err, EINVAL, "--state takes letters such as R, S, D and T, not '%s'", text);
	return 0;
}

int selection_set_regex(struct selection *selection, const char *text, struct err *err)
{
	char why[100];
	int rc;

	if (selection->has_regex)
		return err_set(err, EINVAL, "give --grep once: REGEX|REGEX matches either");
	rc = regcomp(&selection->regex, text, REG_EXTENDED | REG_NOSUB);
	if (rc) {
		regerror(rc, &selection->regex, why, sizeof(why));
		return err_set(err, EINVAL, "--grep takes a regular expression, not '%s': %s", text, why);
	}
	selection->has_regex = true;
	return 0;
}

static bool matches(const regex_t *regex, const char *text)
{
	return text && regexec(regex, text, 0, NULL, 0) == 0;
}

/* As a reader sees it: function, module, file:line. */
static bool frame_matches(const regex_t *regex, const struct frame *frame)
{
	char place[512];

	if (matches(regex, frame->symbol) || (frame->module && matches(regex, frame->module->path)))
		return true;
	if (!frame->file)
		return false;
	snprintf(place, sizeof(place), "%s:%u", frame->file, (unsigned)frame->line);
	return matches(regex, place);
}

static bool stack_matches(const regex_t *regex, const struct stack *stack)
{
	for (size_t i = 0; stack && i < stack->len; i++)
		if (frame_matches(regex, &stack->data[i]))
			return true;
	return false;
}

static bool syscall_matches(const regex_t *regex, const struct arch *arch, const struct snap_syscall *call)
{
	const struct syscall_info *info = call->state == SYSCALL_IN ? arch_syscall(arch, call->nr) : NULL;

	return info && matches(regex, info->name);
}

/* The name that is shown, or the one that the kernel has and other tools show. */
static bool has_name(const struct trace_thread *t, const char *pattern)
{
	return fnmatch(pattern, trace_thread_name(t), 0) == 0 || fnmatch(pattern, t->thread->name, 0) == 0;
}

static bool is_selected(const struct selection *selection, const struct snapshot *snap, const struct trace_thread *t)
{
	const regex_t *regex = &selection->regex;

	if (selection->states[0] && (!t->thread->state || !strchr(selection->states, t->thread->state)))
		return false;
	if (selection->name && !has_name(t, selection->name))
		return false;
	return !selection->has_regex || stack_matches(regex, t->user) || stack_matches(regex, t->kernel) ||
	       syscall_matches(regex, snapshot_arch_of(snap, t->thread), &t->thread->syscall);
}

static bool has_state(const struct selection *selection, const struct snapshot *snap, pid_t tid)
{
	for (size_t i = 0; i < snap->threads.len; i++)
		if (snap->threads.data[i].tid == tid)
			return snap->threads.data[i].state && strchr(selection->states, snap->threads.data[i].state);
	return false;
}

/* A task has a name and a stack of its own; its state is that of the thread which runs it. */
static bool is_selected_task(const struct selection *selection, const struct trace *trace, const struct trace_task *task)
{
	const regex_t *regex = &selection->regex;

	if (selection->states[0] && !has_state(selection, trace->snap, task->tid))
		return false;
	if (selection->name && (!task->name || fnmatch(selection->name, task->name, 0) != 0))
		return false;
	return !selection->has_regex || stack_matches(regex, task->stack) || matches(regex, task->awaits) ||
	       matches(regex, task->awaits_task);
}

static void select_tasks(const struct selection *selection, struct trace *trace)
{
	size_t kept = 0;

	for (size_t i = 0; i < trace->tasks.len; i++)
		if (is_selected_task(selection, trace, &trace->tasks.data[i]))
			trace->tasks.data[kept++] = trace->tasks.data[i];
	trace->tasks.len = kept;
}

void selection_apply(const struct selection *selection, struct trace *trace)
{
	size_t kept = 0;

	for (size_t i = 0; i < trace->threads.len; i++) {
		struct trace_thread *t = &trace->threads.data[i];

		if (is_selected(selection, trace->snap, t))
			trace->threads.data[kept++] = *t;
		else
			raw_stack_deinit(&t->raw);
	}
	trace->threads.len = kept;
	select_tasks(selection, trace);
}

void selection_deinit(struct selection *selection)
{
	if (selection->has_regex)
		regfree(&selection->regex);
	selection->has_regex = false;
}
