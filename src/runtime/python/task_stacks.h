/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_TASK_STACKS_H
#define STAKEOUT_RUNTIME_PYTHON_TASK_STACKS_H

#include <stdbool.h>

#include "model/trace.h"
#include "runtime/python/code.h"
#include "runtime/python/tasks.h"

enum { PYTHON_MAX_AWAITS = 64 }; /* coroutines of one task that wait for each other */

extern const char python_more_frames[]; /* stands for frames that are not shown */

/*
 * What listed tasks do: each one's coroutines from the innermost on, with their variables if `locals`, and what that waits for.
 * All that is read is read through codes->mem. What is appended lives in codes->arena. False when memory is exhausted.
 */
bool python_task_stacks(struct python_codes *codes, const struct python_task_list *list, bool locals, struct trace_tasks *out);

#endif
