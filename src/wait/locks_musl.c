/* SPDX-License-Identifier: MIT */
#include "wait/locks_musl.h"

#include <errno.h>
#include <linux/futex.h>

#include "model/lock_words.h"

/*
 * musl's mutex has its type first, and then the word: the owner's number if it is of a type that needs it, else EBUSY, with a bit for
 * those who wait; one that inherits priorities is the kernel's. A lock for readers and writers is a count, or all ones for a writer, with the same
 * bit. A stream has the owner's number. Condition variables and barriers wait for words on a thread's stack, which tell nothing.
 */
enum { MUTEX_WORD = 4 };

static const uint32_t AWAITED = 0x80000000, WRITER = 0x7fffffff;

static void set_mutex(const struct futex_wait *f, uint32_t op, struct lock *out)
{
	const bool pi = op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2;

	if (!pi && !(f->value & AWAITED))
		return;
	out->address = f->address - MUTEX_WORD;
	if (!pi && f->value == (AWAITED | EBUSY))
		return; /* an owner is not recorded */
	out->evident = f->nwords > 0;
	if (f->nwords)
		lock_set_owner(f, f->words[0] & FUTEX_TID_MASK, out);
	if (pi && out->owner == f->thread->thread)
		out->evident = false; /* it is written before that one is woken */
}

static void set_rwlock(const struct futex_wait *f, struct lock *out)
{
	out->address = f->address;
	if (f->nwords && (f->words[0] & ~AWAITED) != WRITER)
		out->holder = f->words[0] & ~AWAITED ? HOLDER_READERS : HOLDER_NONE;
}

static void set_stream(const struct futex_wait *f, struct lock *out)
{
	if (!f->nwords || !(f->value & MUSL_STREAM_AWAITED))
		return;
	lock_set_owner(f, f->words[0] & ~(uint32_t)MUSL_STREAM_AWAITED, out);
	out->evident = true;
}

bool lock_is_rwlock_of_musl(const struct futex_wait *f)
{
	return (f->names.kind == WAIT_READ_LOCK || f->names.kind == WAIT_WRITE_LOCK) && !f->names.own && f->value & AWAITED;
}

bool lock_of_musl(const struct futex_wait *f, struct lock *out)
{
	*out = (struct lock){.kind = f->names.kind, .word = f->address, .shared = !(f->op & FUTEX_PRIVATE_FLAG)};
	switch (f->names.kind) {
	case WAIT_MUTEX:
		set_mutex(f, f->op & (uint32_t)FUTEX_CMD_MASK, out);
		return true;
	case WAIT_READ_LOCK:
	case WAIT_WRITE_LOCK:
		set_rwlock(f, out);
		return true;
	case WAIT_STREAM:
		set_stream(f, out);
		return true;
	case WAIT_CONDITION:
	case WAIT_BARRIER:
		if (!out->shared)
			out->word = 0;
		return true;
	case WAIT_JOIN:
		return true;
	default:
		return false;
	}
}
