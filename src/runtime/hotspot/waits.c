/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/waits.h"

#include "runtime/hotspot/locks.h"

const struct java_thread *java_waits_thread(const struct java_threads *threads, const struct snapshot *snap, const struct snap_thread *thread)
{
	const unsigned sp = snap->arch->user_sp;

	return thread->regs.valid >> sp & 1 ? java_threads_find(threads, thread->regs.v[sp]) : NULL;
}

void java_waits_number(struct java_threads *threads, const struct snapshot *snap)
{
	for (size_t i = 0; !threads->has_tids && i < snap->threads.len; i++) {
		const struct java_thread *found = java_waits_thread(threads, snap, &snap->threads.data[i]);
		struct java_thread *thread = found ? &threads->list.data[found - threads->list.data] : NULL;

		if (thread && !thread->tid)
			thread->tid = snap->threads.data[i].tid;
	}
	threads->has_tids = true;
}

/* By its stack, if it is a thread of the snapshot; others (-t) by the number that it has for itself, if that is ours. 0: not known. */
static pid_t number_of(const struct snapshot *snap, const struct java_thread *thread)
{
	if (thread && thread->tid)
		return thread->tid;
	return thread && !snap->inner_pid ? thread->own : 0;
}

/* Java's threads sleep nowhere else when they wait for something of Java's. */
static bool may_wait(const struct snapshot *snap, const struct snap_thread *t)
{
	return t->status == THREAD_CAPTURED && t->state != 'R' && t->syscall.state == SYSCALL_IN &&
	       (arch_is_futex(snap->arch, t->syscall.nr) || arch_is_restart(snap->arch, t->syscall.nr));
}

void java_waits_know(const struct java_threads *threads, const struct snapshot *snap)
{
	struct java_wait wait;

	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];
		const struct java_thread *thread = may_wait(snap, t) ? java_waits_thread(threads, snap, t) : NULL;

		if (thread)
			java_wait_read(threads, thread, &wait);
	}
}

static const char *dotted(const struct java_threads *threads, const struct symbol_text *text)
{
	char out[SYMBOL_MAX + 1];

	for (size_t i = 0; i < text->len; i++)
		out[i] = text->bytes[i] == '/' ? '.' : text->bytes[i];
	return text->len ? arena_intern_n(threads->arena, out, text->len) : NULL;
}

void java_waits_tell(const struct java_threads *threads, const struct snapshot *snap, const struct snap_thread *thread, struct runtime_wait *out)
{
	static const enum wait_holder holders[] = {
		[JAVA_OWNER_NOBODY] = HOLDER_NONE,
		[JAVA_OWNER_UNKNOWN] = HOLDER_NOT_RECORDED,
		[JAVA_OWNER_THREAD] = HOLDER_THREAD,
		[JAVA_OWNER_READERS] = HOLDER_READERS,
		[JAVA_OWNER_ENDED] = HOLDER_ENDED,
	};
	const struct java_thread *own = may_wait(snap, thread) ? java_waits_thread(threads, snap, thread) : NULL;
	struct java_wait wait = {0};

	if (own)
		java_wait_read(threads, own, &wait);
	if (!wait.kind)
		return;
	*out = (struct runtime_wait){
		.kind = wait.kind,
		.address = wait.object,
		.type = dotted(threads, &wait.type),
		.holder = holders[wait.owner],
		.owner = number_of(snap, wait.thread),
		.subject = number_of(snap, wait.subject),
		.count = wait.count,
		.later = true,
		.endless = wait.kind == WAIT_MONITOR, /* some threads look from time to time whether they were forgotten */
		.doubtful = wait.by_objects && threads->layout->facts[HS_HEAP_WAS_STILL] != 1,
	};
	if (out->holder == HOLDER_THREAD && !out->owner)
		out->holder = HOLDER_NOT_RECORDED;
}
