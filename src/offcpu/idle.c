/* SPDX-License-Identifier: MIT */
#include "offcpu/idle.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "offcpu/name_kinds.h"
#include "offcpu/runtime_waits.h"

enum { CALL_FRAMES = 16 }; /* the innermost ones, where the waiting call is searched for */

struct idle {
	struct offcpu_profile *profile;
	struct u64map names;   /* address of a symbol to a hash of it above its kinds: the same few are on all stacks */
	struct u64map threads; /* by number and start, to index + 1 */
	struct u64map times;   /* place to the time for which its thread waits there */
	VEC(uint64_t) places;  /* of each row; 0: the thread is not idle there */
	VEC(uint64_t) pools;   /* of each row; 0: it is idle by itself */
	struct u64map members; /* pool to its number of threads */
};

static void idle_deinit(struct idle *idle)
{
	u64map_deinit(&idle->names);
	u64map_deinit(&idle->threads);
	u64map_deinit(&idle->times);
	vec_deinit(&idle->places);
	vec_deinit(&idle->pools);
	u64map_deinit(&idle->members);
}

/* The kinds of the frame's name, and a hash of it; without a name the address stands for it. */
static bool find_name(struct idle *idle, const struct frame *frame, unsigned *kinds, uint64_t *hash)
{
	uint64_t *name;
	bool created;

	*kinds = 0;
	*hash = frame->address;
	if (!frame->symbol)
		return true;
	/* the same word may be a function of the program and one of its runtime */
	name = u64map_put(&idle->names, (uintptr_t)frame->symbol ^ (uint64_t)frame->kind << 56, &created);
	if (!name)
		return false;
	if (created)
		*name = hash_bytes(HASH_SEED, frame->symbol, strlen(frame->symbol)) << NAME_KINDS |
			offcpu_frame_kinds(frame);
	*kinds = *name & ((1u << NAME_KINDS) - 1);
	*hash = *name >> NAME_KINDS;
	return true;
}

/* What the names on a stack say about it. */
struct stack_traits {
	unsigned kinds; /* of all names */
	bool named;     /* at least one frame has a name */
	size_t call;    /* number of innermost frames that belong to the waiting call */
	bool condition; /* it waits for a condition variable */
	bool semaphore;
	uint64_t functions; /* a hash of the other frames' names */
};

/* Only plumbing may come before the call; anything its library needs may come before a condition variable. */
static bool find_call(struct idle *idle, const struct stack *stack, struct stack_traits *traits)
{
	bool plumbing = true;
	unsigned kinds;
	uint64_t hash;

	for (size_t i = 0; i < stack->len && i < CALL_FRAMES; i++) {
		if (!find_name(idle, &stack->data[i], &kinds, &hash))
			return false;
		if ((plumbing && kinds & NAME_CALL) || kinds & (NAME_CONDITION | NAME_SEMAPHORE))
			traits->call = i + 1;
		else if (traits->condition || traits->semaphore)
			break;
		traits->condition |= (kinds & NAME_CONDITION) != 0;
		traits->semaphore |= (kinds & NAME_SEMAPHORE) != 0;
		plumbing &= (kinds & NAME_PLUMBING) != 0;
	}
	return true;
}

/* What the language's library says of the wait, then its frames tell nothing else. */
static bool find_runtime_call(const struct stack *stack, struct stack_traits *traits)
{
	const enum frame_wait wait = offcpu_runtime_wait(stack, &traits->call);

	traits->condition = wait == RUNTIME_WAIT_CONDITION;
	traits->semaphore = wait == RUNTIME_WAIT_SEMAPHORE;
	traits->kinds = wait == RUNTIME_WAIT_LOCK     ? NAME_LOCK
			: wait == RUNTIME_WAIT_SLEEP  ? NAME_SLEEP
			: wait == RUNTIME_WAIT_OTHERS ? NAME_OTHERS
						      : 0;
	return wait != RUNTIME_WAIT_UNKNOWN;
}

static bool read_stack(struct idle *idle, const struct stack *stack, struct stack_traits *traits)
{
	bool told;

	*traits = (struct stack_traits){.functions = HASH_SEED};
	if (!stack)
		return true;
	told = find_runtime_call(stack, traits);
	if (!told && !find_call(idle, stack, traits))
		return false;
	for (size_t i = 0; i < stack->len; i++) {
		unsigned kinds;
		uint64_t hash;

		if (!find_name(idle, &stack->data[i], &kinds, &hash))
			return false;
		traits->kinds |= told && i < traits->call ? 0 : kinds;
		traits->named |= stack->data[i].symbol != NULL;
		if (i >= traits->call)
			traits->functions = hash_u64(traits->functions, hash);
	}
	return true;
}

static bool is_for_work(const struct stack_traits *kernel, const struct stack_traits *user)
{
	if (user->kinds & (NAME_LOCK | NAME_SLEEP | NAME_OTHERS))
		return false;
	if (!kernel->named)
		return user->call;
	if (kernel->kinds & NAME_FUTEX)
		return user->condition || user->semaphore;
	return kernel->kinds & NAME_KERNEL_WORK;
}

static uint64_t thread_key(pid_t pid, pid_t tid, uint64_t start_ns)
{
	return hash_u64(hash_u64(HASH_SEED, (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid), start_ns);
}

static uint64_t row_key(const struct offcpu_row *row)
{
	return thread_key(row->pid, row->tid, row->thread_start_ns);
}

static struct offcpu_thread *find_thread(const struct idle *idle, const struct offcpu_row *row)
{
	const uint64_t *index = u64map_find(&idle->threads, row_key(row));

	return index ? &idle->profile->threads.data[*index - 1] : NULL;
}

/* A thread that is awake has work, even if it gets no CPU for it. */
static uint64_t asleep_ns(const struct offcpu_sum *sum)
{
	return sum->total_ns > sum->runnable_ns ? sum->total_ns - sum->runnable_ns : 0;
}

/*
 * A number for where a thread waits for work; 0: it does not, or is not idle there because it waits too little. *pool:
 * a number for where the threads of its process do, if it is idle only when others are, too; or 0.
 */
static bool find_place(struct idle *idle, const struct offcpu_row *row, uint64_t *place, uint64_t *pool)
{
	const struct offcpu_thread *thread = row->state == 'S' ? find_thread(idle, row) : NULL;
	struct stack_traits kernel, user;

	*place = *pool = 0;
	if (!thread || !offcpu_is_nearly_all(asleep_ns(&thread->sum), idle->profile->duration_ns))
		return true;
	if (!read_stack(idle, row->kernel, &kernel) || !read_stack(idle, row->user, &user))
		return false;
	if (is_for_work(&kernel, &user))
		*place = hash_u64(row->user ? user.functions : kernel.functions, row_key(row));
	if (*place && user.semaphore && !user.condition)
		*pool = hash_u64(hash_u64(user.functions, (uint32_t)row->pid), row->process_start_ns);
	return true;
}

static bool find_threads(struct idle *idle)
{
	for (size_t i = 0; i < idle->profile->threads.len; i++) {
		struct offcpu_thread *thread = &idle->profile->threads.data[i];
		uint64_t *index;
		bool created;

		thread->idle_ns = 0;
		index = u64map_put(&idle->threads, thread_key(thread->pid, thread->tid, thread->start_ns), &created);
		if (!index)
			return false;
		*index = i + 1;
	}
	return true;
}

static bool find_places(struct idle *idle)
{
	for (size_t i = 0; i < idle->profile->rows.len; i++) {
		const struct offcpu_row *row = &idle->profile->rows.data[i];
		uint64_t place, pool, *ns;
		bool created;

		if (!find_place(idle, row, &place, &pool) || !vec_push(&idle->places, place) ||
		    !vec_push(&idle->pools, pool))
			return false;
		ns = place ? u64map_put(&idle->times, place, &created) : NULL;
		if (ns)
			*ns += asleep_ns(&row->sum);
		else if (place)
			return false;
	}
	return true;
}

/* Nearly all the time of its thread. */
static bool is_for_long(const struct idle *idle, uint64_t place)
{
	return place && offcpu_is_nearly_all(*u64map_find(&idle->times, place), idle->profile->duration_ns);
}

/* Counts the threads in each pool. */
static bool count_members(struct idle *idle)
{
	_cleanup_(u64map_deinit) struct u64map counted = {0}; /* places */

	for (size_t i = 0; i < idle->places.len; i++) {
		uint64_t *members;
		bool created;

		if (!idle->pools.data[i] || !is_for_long(idle, idle->places.data[i]))
			continue;
		if (!u64map_put(&counted, idle->places.data[i], &created))
			return false;
		if (!created)
			continue;
		members = u64map_put(&idle->members, idle->pools.data[i], &created);
		if (!members)
			return false;
		++*members;
	}
	return true;
}

/* One thread alone may wait for a semaphore that stands for a lock; several in one place take work from there. */
static bool is_alone(const struct idle *idle, uint64_t pool)
{
	const uint64_t *members = pool ? u64map_find(&idle->members, pool) : NULL;

	return pool && (!members || *members < 2);
}

bool offcpu_mark_idle(struct offcpu_profile *profile)
{
	_cleanup_(idle_deinit) struct idle idle = {.profile = profile};

	if (!find_threads(&idle) || !find_places(&idle) || !count_members(&idle))
		return false;
	for (size_t i = 0; i < profile->rows.len; i++) {
		struct offcpu_row *row = &profile->rows.data[i];

		row->idle = is_for_long(&idle, idle.places.data[i]) && !is_alone(&idle, idle.pools.data[i]);
		if (row->idle)
			find_thread(&idle, row)->idle_ns += row->sum.total_ns;
	}
	return true;
}
