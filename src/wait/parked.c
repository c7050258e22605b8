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

			ok = u64map_put(&seen, candidates[k], &created) && (!created || ask_want(wants, candidates[k] - KIND_AT, WAIT_BYTES, ASK_BYTES));
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
	const uint64_t *slot = u64map_find(again, candidate - KIND_AT);
	const size_t bytes = MUTEX_WORDS * sizeof(words[0]);

	return slot && mem_copy_read(&f->threads->snap->copies.data[*slot].copy, address, words, bytes) == bytes;
}

/* The number of its owner; 0: it is no such mutex, or nobody has it. */
static uint32_t owner_of(const uint32_t words[MUTEX_WORDS])
{
	const uint32_t owner = words[0] & FUTEX_TID_MASK;

	return lock_is_pi_kind(words[MUTEX_KIND]) && words[MUTEX_OWNER] == owner && words[MUTEX_USERS] ? owner : 0;
}

bool parked_find(struct futex_wait *f, const struct u64map *again, struct lock *out)
{
	const struct snapshot *snap = f->threads->snap;
	const struct snap_thread *t = f->thread->thread;
	const uint32_t self = wait_number_of(snap, t);
	struct found own = {0}, others = {0};
	const struct found *meant;
	uint64_t candidates[CANDIDATES];
	const size_t n = parked_is(snap, t) ? pointers_of(snap, t, &mutexes, candidates, CANDIDATES) : 0;
	uint32_t words[MUTEX_WORDS];

	for (size_t i = 0; i < 2 * n; i++) {
		const uint64_t candidate = candidates[i / 2], address = candidate - (i % 2 ? KIND_AT : 0);
		const uint32_t owner = read_words(f, again, candidate, address, words) ? owner_of(words) : 0;

		if (owner)
			note(owner == self ? &own : &others, address, words);
	}
	/* It may have some of its own, but waits for one that another thread has, unless there is none. */
	meant = others.address ? &others : &own;
	if (!meant->address || meant->several)
		return false;
	f->address = meant->address;
	memcpy(f->words, meant->words, sizeof(meant->words));
	f->nwords = MUTEX_WORDS;
	f->again = true;
	*out = lock_of_pi_mutex(f);
	return true;
}
