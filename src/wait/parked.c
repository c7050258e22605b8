/* SPDX-License-Identifier: MIT */
#include "wait/parked.h"

#include <linux/futex.h>
#include <string.h>

#include "model/lock_words.h"
#include "target/pointers.h"

enum {
	CANDIDATES = 64,
	NEAR = 512, /* bytes from the innermost of the stack to the word */
	SEMAPHORE_WORDS = 3,
	KIND_AT = 4 * MUTEX_KIND, /* in a mutex: what is left in a register may point there */
};

static const struct pointed mutexes = {.alignment = 8, .bytes = WAIT_BYTES, .scanned = 512};

/* A semaphore on the stack is waited for in the same way: it counts those that do so, and is not shared. */
static bool is_semaphore(const uint32_t words[SEMAPHORE_WORDS])
{
	return words[1] == 1 && words[2] == 0;
}

bool parked_is(const struct snapshot *snap, const struct snap_thread *t)
{
	const uint64_t *args = t->syscall.args, op = args[1] & (uint64_t)FUTEX_CMD_MASK;
	uint32_t words[SEMAPHORE_WORDS];

	return t->status == THREAD_CAPTURED && t->state != 'R' && t->syscall.state == SYSCALL_IN && snapshot_arch_of(snap, t)->word == 8 &&
	       arch_is_futex(snap->arch, t->syscall.nr) && (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET) && (uint32_t)args[2] == 0 && !args[3] &&
	       args[0] >= t->stack.start && args[0] - t->stack.start < NEAR &&
	       mem_copy_read(&t->stack, args[0], words, sizeof(words)) == sizeof(words) && words[0] == 0 && !is_semaphore(words);
}

/* From where on memory is read for a candidate, which may be the mutex or its kind: a mapping may begin there. */
static uint64_t beginning_of(const struct snapshot *snap, uint64_t candidate)
{
	const struct map_entry *map = maps_find(&snap->maps, candidate);

	return map && candidate - map->start < KIND_AT ? candidate : candidate - KIND_AT;
}

static bool want_mutexes(void *state, const struct snapshot *snap, const struct snap_thread *thread, const struct ask *answers, struct ask *wants)
{
	struct u64map seen = {0};
	bool ok = true;

	for (size_t i = 0; ok && !answers->len && i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];
		uint64_t candidates[CANDIDATES];
		const size_t n = parked_is(snap, t) ? pointers_of(snap, t, &mutexes, candidates, CANDIDATES) : 0;

		for (size_t k = 0; ok && k < n; k++) {
			bool created = false;

			ok = u64map_put(&seen, candidates[k], &created) &&
			     (!created || ask_want(wants, beginning_of(snap, candidates[k]), WAIT_BYTES, ASK_BYTES));
		}
	}
	u64map_deinit(&seen);
	return ok;
}

const struct asker parked_asker = {.max_rounds = 1, .ask = want_mutexes};

/* Mutexes of one kind that were found, of which only one can be meant. */
struct found {
	uint64_t address; /* of the last one */
	uint32_t words[MUTEX_WORDS];
	bool several;
};

static void note(struct found *found, uint64_t address, const uint32_t words[MUTEX_WORDS])
{
	found->several |= found->address && found->address != address;
	found->address = address;
	memcpy(found->words, words, sizeof(found->words));
}

static bool read_words(const struct futex_wait *f, const struct u64map *again, uint64_t candidate, uint64_t address, uint32_t words[MUTEX_WORDS])
{
	const uint64_t *slot = u64map_find(again, beginning_of(f->threads->snap, candidate));
	const size_t bytes = MUTEX_WORDS * sizeof(words[0]);

	return slot && mem_copy_read(&f->threads->snap->copies.data[*slot].copy, address, words, bytes) == bytes;
}

/* Of a kind that is waited for so: of others the function returns an error. */
static bool is_mutex(const uint32_t words[MUTEX_WORDS])
{
	return lock_is_pi_kind(words[MUTEX_KIND]) && words[MUTEX_OWNER] == (words[0] & FUTEX_TID_MASK);
}

/* The kernel refuses what another thread has only if that one has ended, or waits for such a mutex itself. */
static bool may_be_refused(const struct futex_wait *f, uint32_t owner)
{
	const struct snap_thread *t = wait_thread_numbered(f->threads, owner);
	const uint64_t op = t ? t->syscall.args[1] & (uint64_t)FUTEX_CMD_MASK : 0;

	if (!t || parked_is(f->threads->snap, t))
		return true;
	return t->state != 'R' && t->syscall.state == SYSCALL_IN && arch_is_futex(f->threads->snap->arch, t->syscall.nr) &&
	       (op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2);
}

/* False: one of them is free, and may be what was refused when somebody had it. */
static bool find_candidates(const struct futex_wait *f, const struct u64map *again, struct found *own, struct found *others)
{
	const struct snapshot *snap = f->threads->snap;
	const struct snap_thread *t = f->thread->thread;
	const uint32_t self = wait_number_of(snap, t);
	uint64_t candidates[CANDIDATES];
	const size_t n = pointers_of(snap, t, &mutexes, candidates, CANDIDATES);
	uint32_t words[MUTEX_WORDS];

	for (size_t i = 0; i < 2 * n; i++) {
		const uint64_t candidate = candidates[i / 2], address = candidate - (i % 2 ? KIND_AT : 0);

		if (!read_words(f, again, candidate, address, words) || !is_mutex(words))
			continue;
		if (!words[MUTEX_OWNER])
			return false;
		if (words[MUTEX_OWNER] == self)
			note(own, address, words);
		else if (may_be_refused(f, words[MUTEX_OWNER]))
			note(others, address, words);
	}
	return true;
}

bool parked_find(struct futex_wait *f, const struct u64map *again, struct lock *out)
{
	struct found own = {0}, others = {0};
	const struct found *meant;

	if (!parked_is(f->threads->snap, f->thread->thread) || !find_candidates(f, again, &own, &others))
		return false;
	/* It may have some of its own, but waits for one that another thread has, unless there is none. */
	meant = others.address ? &others : &own;
	if (!meant->address || meant->several)
		return false;
	f->address = meant->address;
	memcpy(f->words, meant->words, sizeof(meant->words));
	f->nwords = MUTEX_WORDS;
	f->again = true;
	*out = lock_of_pi_mutex(f);
	if (out->owner)
		return true;
	out->evident = false; /* another process may have got it by the time that it was read */
	if (f->threads->snap->partial && out->holder == HOLDER_ENDED) { /* or is a thread that was not wanted */
		out->holder = HOLDER_NOT_RECORDED;
		out->number = 0;
	}
	return true;
}
