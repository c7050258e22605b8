/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_TASK_STACKS_H
#define STAKEOUT_RUNTIME_PYTHON_TASK_STACKS_H

#include <stdbool.h>

#include "model/trace.h"
#include "runtime/python/code.h"
#include "runtime/python/tasks.h"
#include "target/memory.h"

enum { PYTHON_MAX_AWAITS = 64 }; /* coroutines of one task that wait for each other */

extern const char python_more_frames[]; /* stands for frames that are not shown */

/*
 * What listed tasks do: each one's coroutines from the innermost on, with their variables if `locals`, and what that waits for.
 * All that is read is read through codes->mem. What is appended lives in codes->arena. False when memory is exhausted.
 */
bool python_task_stacks(struct python_codes *codes, const struct python_task_list *list, bool locals, struct trace_tasks *out);

/*
 * Tasks go on while they are read. Compares each and its coroutines, as they were read through codes->mem, with the process
 * as it is now: if they are the same, there was an instant at which all of it was true, when the first look had ended. Else
 * it sets has_changed, and *changed. False when memory is exhausted.
 */
bool python_tasks_check(const struct python_codes *codes, struct memory *vm, const struct snapshot *snap,
			struct python_task_list *list, bool *changed);

#endif
