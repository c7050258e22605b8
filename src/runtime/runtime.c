/* SPDX-License-Identifier: MIT */
#include "runtime/runtime.h"

#include "runtime/hotspot/hotspot.h"
#include "runtime/python/python.h"
#include "runtime/v8/v8.h"

/* Go is not among them: its stacks are native ones, and how they change is for the walk (unwind/go_stack.h). */
static const struct runtime_ops *const runtime_list[] = {
	&python_runtime,
	&hotspot_runtime,
	&v8_runtime,
	NULL,
};

static bool add(struct runtimes *runtimes, const struct runtime *runtime)
{
	struct stepper stepper = {.ops = runtime->ops->stepper, .state = runtime->state};

	return vec_push(runtimes, *runtime) && (!stepper.ops || !runtime->state || vec_push(&runtimes->steppers, stepper));
}

/* A snapshot may have been saved by another version of ours, which kept something else of it. */
static void tell_unreadable(struct target *target, const char *name)
{
	struct snap_runtime *saved = target_is_live(target) ? NULL : snapshot_find_runtime(target->snap, name);

	if (saved && !saved->problem)
		saved->problem = "another version of stakeout has saved it, and what is told of it there cannot be read";
}

bool runtimes_init(struct runtimes *runtimes, struct target *target)
{
	*runtimes = (struct runtimes){0};
	for (size_t i = 0; runtime_list[i]; i++) {
		struct runtime runtime = {.ops = runtime_list[i]};

		if (target && runtime.ops->detect && !runtime.ops->detect(target, &runtime.state)) {
			tell_unreadable(target, runtime.ops->name);
			continue;
		}
		if (!add(runtimes, &runtime)) {
			runtimes_deinit(runtimes);
			return false;
		}
	}
	return true;
}

void runtimes_deinit(struct runtimes *runtimes)
{
	for (size_t i = 0; i < runtimes->len; i++)
		if (runtimes->data[i].ops->destroy)
			runtimes->data[i].ops->destroy(runtimes->data[i].state);
	vec_deinit(&runtimes->steppers);
	vec_deinit(runtimes);
}

void runtimes_want_locals(const struct runtimes *runtimes)
{
	for (size_t i = 0; i < runtimes->len; i++)
		if (runtimes->data[i].ops->want_locals && runtimes->data[i].state)
			runtimes->data[i].ops->want_locals(runtimes->data[i].state);
}

bool runtimes_are_likely(const struct maps *maps, struct mem *mem)
{
	for (size_t i = 0; runtime_list[i]; i++)
		if ((runtime_list[i]->read || runtime_list[i]->locks) && runtime_list[i]->is_likely(maps, mem))
			return true;
	return false;
}

bool runtimes_are_told(const struct maps *maps, struct mem *mem)
{
	for (size_t i = 0; runtime_list[i]; i++)
		if (runtime_list[i]->describe && runtime_list[i]->is_likely(maps, mem))
			return true;
	return false;
}

void runtimes_refresh(const struct runtimes *runtimes)
{
	for (size_t i = 0; i < runtimes->len; i++)
		if (runtimes->data[i].ops->refresh)
			runtimes->data[i].ops->refresh(runtimes->data[i].state);
}

void runtimes_read(const struct runtimes *runtimes, pid_t tid, struct mem *mem)
{
	for (size_t i = 0; i < runtimes->len; i++)
		if (runtimes->data[i].ops->read)
			runtimes->data[i].ops->read(runtimes->data[i].state, tid, mem);
}

bool runtimes_frames(const struct runtimes *runtimes, const struct snapshot *snap, const struct snap_thread *thread,
		     struct raw_stack *raw)
{
	for (size_t i = 0; i < runtimes->len; i++) {
		const struct runtime *runtime = &runtimes->data[i];

		if (runtime->ops->frames && !runtime->ops->frames(runtime->state, snap, thread, raw))
			return false;
	}
	return true;
}

void runtimes_look(const struct runtimes *runtimes, const struct maps *maps)
{
	for (size_t i = 0; i < runtimes->len; i++)
		if (runtimes->data[i].ops->look)
			runtimes->data[i].ops->look(runtimes->data[i].state, maps);
}

void runtimes_forget(const struct runtimes *runtimes)
{
	for (size_t i = 0; i < runtimes->len; i++)
		if (runtimes->data[i].ops->forget)
			runtimes->data[i].ops->forget(runtimes->data[i].state);
}

void runtimes_learn_code(const struct runtimes *runtimes, const struct raw_stack *raw, runtime_code_fn fn, void *arg)
{
	for (size_t i = 0; i < runtimes->len; i++)
		if (runtimes->data[i].ops->learn_code)
			runtimes->data[i].ops->learn_code(runtimes->data[i].state, raw, fn, arg);
}

void runtimes_name_threads(const struct runtimes *runtimes, runtime_name_fn fn, void *arg)
{
	for (size_t i = 0; i < runtimes->len; i++)
		if (runtimes->data[i].ops->name_threads)
			runtimes->data[i].ops->name_threads(runtimes->data[i].state, fn, arg);
}

bool runtimes_sleeping(const struct runtimes *runtimes, pid_t tid, struct mem *mem, struct raw_stack *raw)
{
	for (size_t i = 0; i < runtimes->len; i++) {
		const struct runtime *runtime = &runtimes->data[i];

		if (runtime->ops->sleeping && !runtime->ops->sleeping(runtime->state, tid, mem, raw))
			return false;
	}
	return true;
}

void runtimes_learn(const struct runtimes *runtimes, const struct raw_stack *raw)
{
	for (size_t i = 0; i < runtimes->len; i++)
		if (runtimes->data[i].ops->learn)
			runtimes->data[i].ops->learn(runtimes->data[i].state, raw);
}

/* What the first runtime that knows a thread leaves open. */
static void fill_in(struct thread_runtime *known, const struct thread_runtime *more)
{
	known->name = known->name ? known->name : more->name;
	known->state = known->state ? known->state : more->state;
	known->problem = known->problem ? known->problem : more->problem;
	if (!known->has_daemon) {
		known->has_daemon = more->has_daemon;
		known->is_daemon = more->is_daemon;
	}
	if (!known->has_gil) {
		known->has_gil = more->has_gil;
		known->holds_gil = more->holds_gil;
		known->waits_for_gil = more->waits_for_gil;
	}
}

static const char *version_of(const struct snapshot *snap, const char *runtime)
{
	const struct snap_runtime *found = snapshot_find_runtime(snap, runtime);

	return found ? found->version : NULL;
}

void runtimes_thread(const struct runtimes *runtimes, const struct snapshot *snap, const struct snap_thread *thread,
		     struct thread_runtime *out)
{
	*out = (struct thread_runtime){0};
	for (size_t i = 0; i < runtimes->len; i++) {
		struct thread_runtime told = {0};

		if (runtimes->data[i].ops->thread)
			runtimes->data[i].ops->thread(runtimes->data[i].state, snap, thread, &told);
		if (told.runtime && out->runtime)
			fill_in(out, &told);
		else if (told.runtime)
			*out = told;
	}
	if (out->runtime)
		out->version = version_of(snap, out->runtime);
}

void runtimes_waits(const struct runtimes *runtimes, const struct snapshot *snap, const struct snap_thread *thread, struct runtime_wait *out)
{
	*out = (struct runtime_wait){0};
	for (size_t i = 0; !out->kind && i < runtimes->len; i++)
		if (runtimes->data[i].ops->waits)
			runtimes->data[i].ops->waits(runtimes->data[i].state, snap, thread, out);
}

void runtimes_note(const struct runtimes *runtimes, struct notes *notes)
{
	for (size_t i = 0; i < runtimes->len; i++) {
		const char *note = runtimes->data[i].ops->note ? runtimes->data[i].ops->note(runtimes->data[i].state) : NULL;

		if (note)
			notes_add(notes, "%s", note);
	}
}

bool runtimes_tasks(const struct runtimes *runtimes, struct trace_tasks *out)
{
	for (size_t i = 0; i < runtimes->len; i++)
		if (runtimes->data[i].ops->tasks && !runtimes->data[i].ops->tasks(runtimes->data[i].state, out))
			return false;
	return true;
}

bool runtimes_place(const struct runtimes *runtimes, const struct raw_stack *native, struct raw_stack *told)
{
	for (size_t i = 0; i < runtimes->len; i++) {
		const struct runtime *runtime = &runtimes->data[i];

		if (runtime->ops->place && runtime->ops->place(runtime->state, native, told))
			return true;
	}
	return false;
}

bool runtimes_merge(void *ctx, const struct raw_stack *raw, struct stack *stack)
{
	const struct runtimes *runtimes = ctx;

	for (size_t i = 0; i < runtimes->len; i++) {
		const struct runtime *runtime = &runtimes->data[i];

		if (runtime->ops->merge && !runtime->ops->merge(runtime->state, raw, runtimes->keep, stack))
			return false;
	}
	return true;
}
