/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_TASKS_H
#define STAKEOUT_RUNTIME_PYTHON_TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "model/mem.h"
#include "runtime/python/layout.h"
#include "runtime/python/threads.h"

/*
 * The tasks of asyncio. Up to 3.13 the module `asyncio.tasks` has them in a set of weak references; since 3.14 those that are
 * implemented in C are in a list of the thread that created them. They change while they are read: each must lead to a
 * coroutine that has not ended, or to what acts like one and waits; what does not is left out.
 */

enum { PYTHON_MAX_TASKS = 4096 };

struct python_task_entry {
	uint64_t object;
	pid_t tid; /* the thread whose loop runs it; 0: not known */
	bool has_changed; /* between two looks at it: what was read of it may never have been true at one instant */
};

struct python_task_list {
	VEC_FIELDS(struct python_task_entry);
	bool cut; /* there are more */
};

/* False when memory is exhausted. */
bool python_tasks_list(const struct python_layout *layout, struct mem *mem, const struct python_threads *threads,
		       struct python_task_list *out);

/* What a task consists of: addresses of objects. */
struct python_task_parts {
	uint64_t coroutine; /* or, of a task that waits, what acts like one */
	uint64_t name; /* a str; since 3.12 also an int, the number behind "Task-" */
	uint64_t waiter; /* the future that it waits for; 0: none */
	uint64_t loop;
};

/* `hint` is where in a task its coroutine was found last, and is updated: 0 at first. False: it is no task. */
bool python_task_parts(const struct python_layout *layout, struct mem *mem, uint64_t object, uint64_t *hint,
		       struct python_task_parts *out);

#endif
