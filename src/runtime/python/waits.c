/* SPDX-License-Identifier: MIT */
#include "runtime/python/waits.h"

#include "runtime/python/blocks.h"
#include "runtime/python/gil.h"
#include "runtime/python/locks.h"

/* What it waits for is a futex; of such a thread of Python more may be known. NULL: it is none. */
static struct python_thread *find_waiter(const struct python_waits *py, const struct snapshot *snap, const struct snap_thread *t)
{
	const struct python_thread *own = python_roster_find(py->roster, t->tid);

	if (!own || t->status != THREAD_CAPTURED || t->state == 'R' || t->syscall.state != SYSCALL_IN ||
	    !arch_is_futex(snap->arch, t->syscall.nr))
		return NULL;
	return &py->roster->known.data[own - py->roster->known.data];
}

/* Whether it waits for the GIL of any of its interpreters, as of the instant at which it was read. */
static bool waits_for_gil(const struct python_waits *py, const struct snapshot *snap, const struct snap_thread *t, const struct python_thread *own)
{
	struct thread_copies_mem copies;
	struct python_gil gil;

	if (!thread_copies_mem_init(&copies, py->copies, snap, t))
		return false;
	for (; own; own = python_roster_find_other(py->roster, own))
		if (python_gil_read(py->layout, &copies.mem, own->interp, &gil) &&
		    python_gil_find_wait(&gil, snap->arch, t) == GIL_AWAITED)
			return true;
	return false;
}

/* What others wait for is read again where somebody waits for the GIL: see stays_where_it_is() in wait/waits.c. */
static bool want_again(const struct python_waits *py, const struct snapshot *snap, struct ask *wants)
{
	bool any = false, ok = true;

	for (size_t i = 0; !any && i < snap->threads.len; i++) {
		const struct python_thread *own = find_waiter(py, snap, &snap->threads.data[i]);

		any = own && waits_for_gil(py, snap, &snap->threads.data[i], own);
	}
	for (size_t i = 0; any && ok && i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];

		if (t->status == THREAD_CAPTURED && t->state != 'R' && t->syscall.state == SYSCALL_IN && arch_is_futex(snap->arch, t->syscall.nr))
			ok = ask_want(wants, t->syscall.args[0], WAIT_BYTES, ASK_BYTES);
	}
	return ok;
}

/* Each once for all threads. */
static bool want_candidates(const struct snapshot *snap, const struct snap_thread *t, struct u64map *seen, struct ask *wants)
{
	uint64_t candidates[PYTHON_LOCK_CANDIDATES];
	const size_t n = python_lock_candidates(snap, t, candidates);
	bool ok = true;

	for (size_t i = 0; ok && i < n; i++) {
		bool created = false;

		ok = u64map_put(seen, candidates[i], &created) && (!created || ask_want(wants, candidates[i], PYTHON_LOCK_BYTES, ASK_PASSING));
	}
	return ok;
}

/* Takes the object, if it is a lock; what tells that is kept. */
static bool take_lock(const struct python_waits *py, struct python_thread *own, uint64_t object)
{
	struct python_lock lock;

	if (!object || !python_lock_read(py->layout, py->mem, object, &lock))
		return false;
	own->lock = object;
	return true;
}

/* By what pthread_self() is. 0: it is none of those that are known. */
static pid_t find_by_self(const struct python_waits *py, uint64_t self)
{
	for (size_t i = 0; i < py->roster->known.len; i++)
		if (py->roster->known.data[i].thread == self)
			return py->roster->known.data[i].tid;
	return 0;
}

/* A new thread's is its creator's for a moment, and may have been listed then. Where that was not saved, the list is believed. */
static bool still_has_its_state(const struct python_waits *py, const struct python_thread *known)
{
	const enum python_word field = py->layout->at[PY_TSTATE_NATIVE] ? PY_TSTATE_NATIVE : PY_TSTATE_THREAD;
	uint64_t says;

	return !mem_read_exact(py->mem, known->tstate + py->layout->at[field], &says, sizeof(says)) ||
	       python_tstate_is(py->layout, py->mem, known->tstate, known->thread, known->native);
}

/* By its thread state. 0: likewise. */
static pid_t find_by_state(const struct python_waits *py, uint64_t tstate)
{
	for (size_t i = 0; i < py->roster->known.len; i++)
		if (py->roster->known.data[i].tstate == tstate && still_has_its_state(py, &py->roster->known.data[i]))
			return py->roster->known.data[i].tid;
	return 0;
}

static bool find_lock_beside(const struct python_waits *py, const struct snapshot *snap, const struct snap_thread *t, struct python_thread *own)
{
	struct thread_copies_mem copies;
	const uint64_t object = thread_copies_mem_init(&copies, py->copies, snap, t) ? python_lock_beside(t, &copies.mem) : 0;
	const uint64_t self = object ? python_end_beside(py->mem, object) : 0;

	if (self)
		own->joined = find_by_self(py, self);
	return own->joined || take_lock(py, own, object);
}

/* The futexes for which an object is looked for; false when memory is exhausted. */
static bool list_semaphores(const struct python_waits *py, const struct snapshot *snap, struct u64map *out)
{
	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct python_thread *own = find_waiter(py, snap, &snap->threads.data[i]);
		bool created;
		uint64_t *slot = own && !own->lock ? u64map_put(out, snap->threads.data[i].syscall.args[0], &created) : NULL;

		if (slot)
			*slot = 0;
		else if (own && !own->lock)
			return false;
	}
	return true;
}

/* Which of the candidates points to one of these. */
static void find_objects(const struct python_waits *py, const struct ask *answers, struct u64map *semaphores)
{
	struct python_lock lock;

	for (size_t i = 0; i < answers->len; i++) {
		const struct ask_range *range = &answers->data[i];
		uint64_t *slot = range->keep == ASK_PASSING && range->got == PYTHON_LOCK_BYTES
					 ? u64map_find(semaphores, python_lock_word(range->data))
					 : NULL;

		if (slot && !*slot && python_lock_read(py->layout, py->mem, range->address, &lock))
			*slot = range->address;
	}
}

static bool find_locks(const struct python_waits *py, const struct snapshot *snap, const struct ask *answers)
{
	struct u64map semaphores = {0};
	const bool ok = list_semaphores(py, snap, &semaphores);

	if (ok)
		find_objects(py, answers, &semaphores);
	for (size_t i = 0; ok && i < snap->threads.len; i++) {
		struct python_thread *own = find_waiter(py, snap, &snap->threads.data[i]);
		const uint64_t *slot = own && !own->lock ? u64map_find(&semaphores, snap->threads.data[i].syscall.args[0]) : NULL;

		if (slot)
			own->lock = *slot;
	}
	u64map_deinit(&semaphores);
	return ok;
}

/* The weak references to locks that are waited for: few have any. False when memory is exhausted. */
static bool list_references(const struct python_waits *py, const struct snapshot *snap, struct u64map *out)
{
	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct python_thread *own = find_waiter(py, snap, &snap->threads.data[i]);
		const uint64_t reference = own && own->lock ? python_end_of_lock(py->layout, py->mem, own->lock) : 0;
		bool created;
		uint64_t *slot = reference ? u64map_put(out, reference, &created) : NULL;

		if (slot)
			*slot = 0;
		else if (reference)
			return false;
	}
	return true;
}

/* Of several that had the same state one after the other, the one that is listed comes first. */
static void find_ends(const struct python_waits *py, struct u64map *references)
{
	for (size_t i = 0; references->len && i < py->roster->known.len; i++) {
		const struct python_thread *known = &py->roster->known.data[i];
		const uint64_t reference = python_end_of_thread(py->layout, py->mem, known->tstate);
		uint64_t *slot = reference ? u64map_find(references, reference) : NULL;

		if (slot && !*slot && still_has_its_state(py, known))
			*slot = (uint64_t)known->tid;
	}
}

/* Whose end it is that a lock is for. */
static bool find_joined(const struct python_waits *py, const struct snapshot *snap)
{
	struct u64map references = {0};
	const bool ok = list_references(py, snap, &references);

	if (ok)
		find_ends(py, &references);
	for (size_t i = 0; ok && references.len && i < snap->threads.len; i++) {
		struct python_thread *own = find_waiter(py, snap, &snap->threads.data[i]);
		const uint64_t reference = own && own->lock ? python_end_of_lock(py->layout, py->mem, own->lock) : 0;
		const uint64_t *slot = reference ? u64map_find(&references, reference) : NULL;

		if (slot && (pid_t)*slot != own->tid) /* Python refuses to wait for that */
			own->joined = (pid_t)*slot;
	}
	u64map_deinit(&references);
	return ok;
}

/* Two threads cannot have one lock: one of them has let go of it in a way that cannot be seen. */
static const pid_t contested = -1;

/* Whether somebody may have it by a `with` statement; of a condition it is one that was made for the wait. */
static bool may_have_holder(const struct python_waits *py, const struct snapshot *snap, const struct snap_thread *t,
			    const struct python_thread *own, struct python_blocks *blocks)
{
	struct thread_copies_mem copies;
	struct python_frame frame;
	struct python_lock lock;

	return own->lock && !own->joined && python_lock_read(py->layout, py->mem, own->lock, &lock) && lock.kind == WAIT_PYTHON_LOCK &&
	       thread_copies_mem_init(&copies, py->copies, snap, t) &&
	       python_tstate_is(py->layout, &copies.mem, own->tstate, own->thread, own->native) &&
	       !(python_chain_first(py->layout, &copies.mem, own->tstate, &frame) && python_releases_is_wait(&blocks->releases, frame.code));
}

/* False when memory is exhausted. */
static bool list_unowned(const struct python_waits *py, const struct snapshot *snap, struct python_blocks *blocks, struct u64map *out)
{
	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct python_thread *own = find_waiter(py, snap, &snap->threads.data[i]);
		bool created;
		uint64_t *slot;

		if (!own || !may_have_holder(py, snap, &snap->threads.data[i], own, blocks))
			continue;
		slot = u64map_put(out, own->lock, &created);
		if (!slot)
			return false;
		*slot = 0;
	}
	return true;
}

/*
 * Who ran since its frames were read may be in others now: that it did not is seen later. Of one that runs it is never said that it has a
 * lock, but if it seems to, nobody else is said to have it.
 */
static void find_in_blocks(const struct python_waits *py, const struct snapshot *snap, const struct snap_thread *t, struct python_blocks *blocks,
			   struct u64map *holders)
{
	const bool runs = t->state == 'R' || t->still == STILL_NEVER;
	const struct python_thread *own = t->status == THREAD_CAPTURED ? python_roster_find(py->roster, t->tid) : NULL;
	struct thread_copies_mem copies;

	if (!own || !thread_copies_mem_init(&copies, py->copies, snap, t))
		return;
	for (; own; own = python_roster_find_other(py->roster, own)) {
		uint64_t locks[PYTHON_MAX_BLOCK_LOCKS];
		size_t n = 0;

		if (!python_tstate_is(py->layout, &copies.mem, own->tstate, own->thread, own->native))
			continue;
		python_chain_read(py->layout, &copies.mem, own->tstate, py->chain);
		if (!py->chain->problem)
			n = python_blocks_find(blocks, py->chain, holders, locks);
		for (size_t i = 0; i < n; i++) {
			uint64_t *slot = u64map_find(holders, locks[i]);

			*slot = (uint64_t)(runs || (*slot && (pid_t)*slot != t->tid) ? contested : t->tid);
		}
	}
}

/* Somebody whose frames could not be had may have any lock. */
static bool are_all_seen(const struct python_waits *py, const struct snapshot *snap)
{
	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];

		if (t->status != THREAD_CAPTURED && t->status != THREAD_ZOMBIE && python_roster_find(py->roster, t->tid))
			return false;
	}
	return true;
}

/* Who has the locks that do not record it, but are had by `with` statements. False when memory is exhausted. */
static bool find_holders(const struct python_waits *py, const struct snapshot *snap)
{
	struct python_blocks blocks;
	struct u64map holders = {0};
	bool ok;

	ok = python_blocks_init(&blocks, py->layout, py->now) && (!are_all_seen(py, snap) || list_unowned(py, snap, &blocks, &holders));
	for (size_t i = 0; ok && holders.len && !blocks.budget.refused && i < snap->threads.len; i++)
		find_in_blocks(py, snap, &snap->threads.data[i], &blocks, &holders);
	*py->gave_up = blocks.budget.refused;
	for (size_t i = 0; ok && holders.len && !*py->gave_up && i < snap->threads.len; i++) {
		struct python_thread *own = find_waiter(py, snap, &snap->threads.data[i]);
		const uint64_t *slot = own && own->lock ? u64map_find(&holders, own->lock) : NULL;

		if (slot && (pid_t)*slot != contested)
			own->holder = (pid_t)*slot;
	}
	u64map_deinit(&holders);
	python_blocks_deinit(&blocks);
	return ok;
}

bool python_waits_ask(const struct python_waits *py, const struct snapshot *snap, const struct ask *answers, struct ask *wants)
{
	struct u64map seen = {0};
	bool ok;

	if (answers->len)
		return find_locks(py, snap, answers) && find_joined(py, snap) && find_holders(py, snap);
	ok = want_again(py, snap, wants);
	for (size_t i = 0; ok && i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];
		struct python_thread *own = find_waiter(py, snap, t);

		if (own) {
			own->lock = 0;
			own->holder = 0;
			own->joined = 0;
		}
		if (own && !waits_for_gil(py, snap, t, own) && !find_lock_beside(py, snap, t, own))
			ok = want_candidates(snap, t, &seen, wants);
	}
	u64map_deinit(&seen);
	return ok && (wants->len || find_holders(py, snap));
}

static const struct python_gil *gil_seen_by(const struct python_waits *py, uint64_t tstate)
{
	const uint64_t *slot = u64map_find(py->gils, tstate);

	return slot ? (const struct python_gil *)(uintptr_t)*slot : NULL;
}

static void tell_gil(const struct python_waits *py, const struct python_gil *gil, struct runtime_wait *out)
{
	const struct python_gil *own = gil_seen_by(py, gil->holder);

	*out = (struct runtime_wait){
		.kind = WAIT_GIL,
		.address = gil->address,
		.owner = gil->holder ? find_by_state(py, gil->holder) : 0,
		.endless = true, /* it gets up only to ask for it again */
		.doubtful = !gil->settled || !own || !own->settled || own->holder != gil->holder,
	};
	out->holder = out->owner ? HOLDER_THREAD : HOLDER_NONE;
}

static void tell_lock(const struct python_waits *py, const struct python_thread *thread, struct runtime_wait *out)
{
	struct python_lock lock;

	if (!python_lock_read(py->layout, py->mem, thread->lock, &lock))
		return;
	*out = (struct runtime_wait){.kind = lock.kind, .address = thread->lock, .later = true, .type = "_thread.lock"};
	if (lock.kind != WAIT_PYTHON_RLOCK && thread->holder) {
		out->holder = HOLDER_INFERRED;
		out->owner = thread->holder;
	}
	if (lock.kind != WAIT_PYTHON_RLOCK)
		return;
	out->type = "_thread.RLock";
	out->owner = lock.owner ? find_by_self(py, lock.owner) : 0;
	out->holder = out->owner ? HOLDER_THREAD : lock.owner ? HOLDER_NOT_RECORDED : HOLDER_NONE;
	out->count = out->owner ? lock.count + (python_minor(py->layout) >= 14) : 0;
}

void python_waits_tell(const struct python_waits *py, const struct snapshot *snap, const struct snap_thread *thread, struct runtime_wait *out)
{
	const struct python_thread *first = python_roster_find(py->roster, thread->tid);

	for (const struct python_thread *own = first; own && !out->kind; own = python_roster_find_other(py->roster, own)) {
		const struct python_gil *gil = gil_seen_by(py, own->tstate);

		if (gil && gil->holder != own->tstate && python_gil_find_wait(gil, snap->arch, thread) == GIL_AWAITED)
			tell_gil(py, gil, out);
	}
	if (first && first->joined && !out->kind)
		*out = (struct runtime_wait){.kind = WAIT_PYTHON_JOIN, .later = true, .holder = HOLDER_THREAD, .owner = first->joined};
	else if (first && first->lock && !out->kind)
		tell_lock(py, first, out);
}
