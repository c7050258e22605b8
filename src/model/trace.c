/* SPDX-License-Identifier: MIT */
#include "model/trace.h"

void trace_deinit(struct trace *trace)
{
	for (size_t i = 0; i < trace->threads.len; i++)
		raw_stack_deinit(&trace->threads.data[i].raw);
	vec_deinit(&trace->threads);
	vec_deinit(&trace->tasks);
	notes_deinit(&trace->notes);
}

const char *task_state_name(enum task_state state)
{
	static const char *const names[TASK_STATE_COUNT] = {
		[TASK_SUSPENDED] = "suspended",
		[TASK_RUNNING] = "running",
		[TASK_CREATED] = "created",
	};

	return state < TASK_STATE_COUNT ? names[state] : "unknown";
}

const char *trace_thread_name(const struct trace_thread *t)
{
	return t->runtime.name ? t->runtime.name : t->thread->name;
}

bool trace_thread_is_complete(const struct trace_thread *t)
{
	switch (t->thread->status) {
	case THREAD_ZOMBIE:
	case THREAD_EXITED:
	case THREAD_KERNEL:
		return true;
	default:
		return t->raw.end == STACK_COMPLETE && t->thread->capture != CAPTURE_MOVED;
	}
}

bool trace_is_complete(const struct trace *trace)
{
	for (size_t i = 0; i < trace->threads.len; i++)
		if (!trace_thread_is_complete(&trace->threads.data[i]))
			return false;
	return true;
}
