/* SPDX-License-Identifier: MIT */
#include "wait/runtime_locks.h"

#include <string.h>

#include "wait/library_frames.h"
#include "wait/stillness.h"

static bool is_python_lock(enum wait_kind kind)
{
	return kind == WAIT_PYTHON_LOCK || kind == WAIT_PYTHON_RLOCK;
}

static bool is_parking(enum wait_kind kind)
{
	return kind >= WAIT_JAVA_LOCK && kind <= WAIT_JAVA_PARK;
}

/* What was read after the capture counts if the thread has not run until then. */
static bool is_told(const struct wait_threads *threads, const struct trace_thread *t)
{
	return t->told.kind && (!t->told.later || stillness_lasts(threads, t->thread));
}

/* By frames alone: what there is to say of the kind, and nothing of the object. */
static enum wait_kind kind_by_frames(const struct trace_thread *t)
{
	enum wait_kind kind = library_wait_python(t->user);

	if (!kind)
		kind = library_wait_java(t->user);
	if (!kind && t->runtime.state && strcmp(t->runtime.state, "BLOCKED") == 0)
		kind = WAIT_MONITOR;
	return kind;
}

static bool is_certain(const struct wait_threads *threads, const struct trace_thread *t, const struct wait *w)
{
	const struct snap_thread *owner = w->holder == HOLDER_THREAD ? wait_thread_with_tid(threads, w->owner) : NULL;

	if (!owner || t->told.doubtful || (is_parking(w->kind) && !library_is_parked(t->user)))
		return false;
	return t->told.later ? stillness_of_last_look(threads, t->thread, owner) : stillness_of_capture(t->thread, owner);
}

static void take_told(const struct runtime_wait *told, struct wait *w)
{
	w->kind = told->kind;
	w->address = told->address;
	w->type = told->type;
	w->holder = told->holder;
	w->owner = wait_has_owner(w) ? told->owner : 0;
	w->count = told->count;
	w->timed &= !told->endless;
}

/* Its end is waited for. A thread that joins itself only means to stay: nobody keeps it from going on. */
static bool is_join(const struct trace_thread *t)
{
	return t->told.subject && t->told.subject != t->thread->tid && library_is_join(t->user);
}

/* What its library's functions know better than the objects that they use. */
static void refine(const struct trace_thread *t, struct wait *w)
{
	const enum wait_kind python = is_python_lock(w->kind) ? library_wait_python(t->user) : WAIT_NOTHING;

	if (python && !wait_has_owner(w))
		w->kind = python;
	if (w->kind == WAIT_NOTIFICATION && is_join(t)) {
		w->kind = WAIT_JAVA_JOIN;
		w->holder = HOLDER_THREAD;
		w->owner = t->told.subject;
	}
}

/* By what the owner does, which counts if it still does that. */
static void infer_owner(const struct wait_threads *threads, const struct trace_thread *t, struct wait *w)
{
	const struct snap_thread *owner = wait_thread_with_tid(threads, w->owner);

	if (w->holder != HOLDER_INFERRED || (owner && stillness_of_last_look(threads, t->thread, owner)))
		return;
	w->holder = HOLDER_NOT_RECORDED;
	w->owner = 0;
}

static struct wait in_futex(const struct trace_thread *t)
{
	return (struct wait){.word = t->thread->syscall.args[0], .timed = t->thread->syscall.args[3] != 0};
}

bool runtime_lock_find(const struct wait_threads *threads, const struct trace_thread *t, struct wait *w)
{
	if (!is_told(threads, t))
		return false;
	*w = in_futex(t);
	take_told(&t->told, w);
	infer_owner(threads, t, w);
	refine(t, w);
	w->certain = is_certain(threads, t, w);
	w->owner_pid = wait_has_owner(w) ? t->snap->pid : 0;
	return true;
}

bool runtime_lock_by_frames(const struct trace_thread *t, struct wait *w)
{
	const enum wait_kind kind = kind_by_frames(t);

	if (!kind)
		return false;
	*w = in_futex(t);
	w->kind = kind;
	if (kind == WAIT_TIME) /* whatever it uses for that */
		*w = (struct wait){.kind = kind, .timed = w->timed, .certain = t->thread->still != STILL_NEVER && !t->thread->woken};
	return true;
}
