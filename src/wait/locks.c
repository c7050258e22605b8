/* SPDX-License-Identifier: MIT */
#include "wait/locks.h"

#include <linux/futex.h>
#include <string.h>

#include "model/lock_words.h"
#include "wait/locks_musl.h"

enum { KIND_TYPE = 3, KIND_ROBUST = 0x10, KIND_PI = 0x20, KIND_SHARED = 0x80, KIND_BITS = 0x3ff }; /* of a mutex */

static const uint32_t JOINABLE = 2; /* a thread that lives */

/* The word for readers: whether it is the turn of writers, whether readers wait for this word to change, and from there on their number. */
enum { READERS_WRITING = 1, READERS_AWAITED = 4, READERS_ONE = 8 };

void lock_set_owner(const struct futex_wait *f, uint32_t number, struct lock *out)
{
	out->number = number == INCONSISTENT ? 0 : number;
	out->owner = wait_thread_numbered(f->threads, out->number);
	out->holder = !out->number ? HOLDER_NONE : out->owner || out->shared ? HOLDER_THREAD : HOLDER_ENDED;
}

/* A count means something for those only that their owner may take again. */
static void set_attributes(const struct futex_wait *f, uint32_t kind, struct lock *out)
{
	static const enum mutex_type types[] = {MUTEX_NORMAL, MUTEX_RECURSIVE, MUTEX_ERROR_CHECKING, MUTEX_ADAPTIVE};

	out->mutex.type = types[kind & KIND_TYPE];
	out->mutex.robust = kind & KIND_ROBUST;
	if (out->mutex.type == MUTEX_RECURSIVE && out->holder == HOLDER_THREAD)
		out->count = f->words[MUTEX_COUNT];
}

/*
 * The kernel knows the owner of one that inherits priorities: it is the word itself. It is written before that one is woken, so a
 * thread that seems to wait for itself does not; who really takes such a mutex twice is parked elsewhere by glibc.
 */
static bool is_pi_mutex(const struct futex_wait *f, uint32_t op, struct lock *out)
{
	if (op != FUTEX_LOCK_PI && op != FUTEX_LOCK_PI2)
		return false;
	*out = (struct lock){.kind = WAIT_MUTEX, .address = f->address, .shared = !(f->op & FUTEX_PRIVATE_FLAG), .mutex.inherits = true};
	if (f->nwords)
		lock_set_owner(f, f->words[0] & FUTEX_TID_MASK, out);
	if (f->nwords >= MUTEX_WORDS && f->names.glibc)
		set_attributes(f, f->words[MUTEX_KIND], out);
	out->evident = out->owner != f->thread->thread;
	return true;
}

bool lock_is_pi_kind(uint32_t kind)
{
	return kind & KIND_PI && !(kind & ~(uint32_t)KIND_BITS);
}

struct lock lock_of_pi_mutex(const struct futex_wait *f)
{
	struct lock out = {.kind = WAIT_MUTEX, .address = f->address, .mutex.inherits = true, .evident = true};
	const uint32_t kind = f->words[MUTEX_KIND], owner = f->words[0] & FUTEX_TID_MASK;

	out.shared = kind & KIND_ROBUST ? !wait_thread_numbered(f->threads, owner) : kind & KIND_SHARED; /* as in is_mutex() */
	lock_set_owner(f, owner, &out);
	set_attributes(f, f->words[MUTEX_KIND], &out);
	return out;
}

/*
 * The kernel clears a word of a thread that ends, and wakes who waits for that: its number, or since glibc 2.43 another one, of how it can be
 * joined.
 */
static bool is_join(const struct futex_wait *f, struct lock *out)
{
	const struct snap_thread *other = wait_thread_at(f->threads, f->address);

	const bool exact = other;
	const bool likely = f->names.kind == WAIT_JOIN || (f->names.kind == WAIT_NOTHING && f->names.glibc && f->value > WRITE_PHASE);

	if (!other && likely && !(f->op & FUTEX_PRIVATE_FLAG)) {
		other = wait_thread_numbered(f->threads, f->value);
		if (other && other->tid_address)
			return false; /* it would be known */
	}
	if (!other || other == f->thread->thread || (f->nwords && f->words[0] != f->value))
		return false;
	if (wait_number_of(f->threads->snap, other) != f->value && !(exact && f->value == JOINABLE))
		return false;
	*out = (struct lock){.kind = WAIT_JOIN, .word = f->address, .holder = HOLDER_THREAD, .owner = other, .evident = exact || f->names.kind == WAIT_JOIN};
	out->number = wait_number_of(f->threads->snap, other);
	return true;
}

/*
 * A robust one has its owner's number in two places: that is enough for one in shared memory, where the owner may be any process's, and where
 * glibc itself waits. The function that does is jumped to, and has no name without debug info.
 */
static bool is_robust_beyond_doubt(const struct futex_wait *f, uint32_t owner)
{
	return f->words[0] == f->value && owner && f->words[MUTEX_OWNER] == owner && !(f->op & FUTEX_PRIVATE_FLAG) && f->names.glibc;
}

/* By its structure, if a thread of the process owns it; but sure only if glibc itself waits for it. */
static bool is_mutex(const struct futex_wait *f, struct lock *out)
{
	const uint32_t kind = f->nwords >= MUTEX_WORDS ? f->words[MUTEX_KIND] : UINT32_MAX;
	const bool robust = kind & KIND_ROBUST;
	const uint32_t owner = robust ? f->words[0] & FUTEX_TID_MASK : f->words[MUTEX_OWNER];

	if (kind & ~(uint32_t)KIND_BITS || kind & KIND_PI || (f->names.kind != WAIT_NOTHING && f->names.kind != WAIT_MUTEX))
		return false;
	if (robust ? !(f->value & FUTEX_WAITERS) : f->value != LOCKED_AND_AWAITED)
		return false;
	if (f->names.kind != WAIT_MUTEX && !f->words[MUTEX_USERS])
		return false;
	if (f->names.kind != WAIT_MUTEX && !wait_thread_numbered(f->threads, owner) && !(robust && is_robust_beyond_doubt(f, owner)))
		return false;
	*out = (struct lock){.kind = WAIT_MUTEX, .address = f->address, .evident = f->names.kind == WAIT_MUTEX || f->names.glibc};
	/* A robust one always has that bit; but the kernel sees to it that nobody waits for an owner that has ended. */
	out->shared = robust ? !wait_thread_numbered(f->threads, owner) : kind & KIND_SHARED;
	lock_set_owner(f, owner, out);
	set_attributes(f, kind, out);
	return true;
}

/*
 * Which word of the lock it is: writers wait for the phase of readers to end, behind each other at a futex of theirs; readers for the phase
 * of writers to end, or, where writers go first, for the count of readers to change. Any other value is not glibc's.
 */
static unsigned place_in_rwlock(const struct futex_wait *f)
{
	if (f->names.kind == WAIT_WRITE_LOCK)
		return f->value == READ_PHASE ? RWLOCK_PHASE : f->value == WRITE_PHASE ? RWLOCK_WRITERS : UINT32_MAX;
	if (f->value == WRITE_PHASE)
		return RWLOCK_PHASE;
	return f->value >= READERS_ONE && (f->value & (READERS_WRITING | READERS_AWAITED)) == READERS_AWAITED ? RWLOCK_READERS : UINT32_MAX;
}

/* Their count is there only where it is the futex itself; else a writer that waits for no other one waits for them. */
static bool have_readers(const uint32_t *lock, enum wait_kind wanted, unsigned place)
{
	if (lock[RWLOCK_WRITER])
		return false;
	if (place == RWLOCK_READERS)
		return lock[RWLOCK_READERS] >= READERS_ONE && !(lock[RWLOCK_READERS] & READERS_WRITING);
	return wanted == WAIT_WRITE_LOCK;
}

/* Readers are only counted. */
static bool is_rwlock(const struct futex_wait *f, struct lock *out)
{
	const unsigned place = place_in_rwlock(f);
	uint32_t lock[RWLOCK_SHARED + 1] = {0}; /* from the futex on */

	if (f->names.kind != WAIT_READ_LOCK && f->names.kind != WAIT_WRITE_LOCK)
		return false;
	*out = (struct lock){.kind = f->names.kind, .word = f->address};
	if (place > RWLOCK_WRITERS || f->nwords <= RWLOCK_SHARED - place)
		return true;
	memcpy(lock + place, f->words, (RWLOCK_SHARED + 1 - place) * sizeof(lock[0]));
	if (lock[RWLOCK_SHARED] > 1 || lock[RWLOCK_UNUSED] || lock[RWLOCK_UNUSED + 1])
		return true;
	out->address = f->address - 4 * place;
	out->shared = lock[RWLOCK_SHARED];
	out->evident = true;
	lock_set_owner(f, lock[RWLOCK_WRITER], out);
	if (have_readers(lock, f->names.kind, place))
		out->holder = HOLDER_READERS;
	return true;
}

enum { BEHIND_NUMBER = 856 }; /* the word of how a thread can be joined, on both */

/* From the beginning of glibc's descriptor to the thread's number in it. */
static uint64_t number_in_descriptor(const struct snapshot *snap)
{
	return snap->arch->id == ARCH_X86_64 ? 720 : snap->arch->id == ARCH_AARCH64 ? 208 : 0;
}

/* The thread that has its descriptor there: what the kernel clears is at one of two places in it. */
static const struct snap_thread *thread_of_descriptor(const struct wait_threads *threads, uint64_t descriptor)
{
	const uint64_t number = descriptor + number_in_descriptor(threads->snap);
	const struct snap_thread *thread = wait_thread_at(threads, number);

	return thread ? thread : wait_thread_at(threads, number + BEHIND_NUMBER);
}

static bool is_stream(const struct futex_wait *f, struct lock *out)
{
	const struct snap_thread *owner;
	uint64_t descriptor;

	if (f->nwords < STREAM_WORDS || f->value != LOCKED_AND_AWAITED || (f->names.kind != WAIT_NOTHING && f->names.kind != WAIT_STREAM))
		return false;
	memcpy(&descriptor, &f->words[STREAM_OWNER], sizeof(descriptor));
	owner = thread_of_descriptor(f->threads, descriptor);
	if (!owner)
		return false;
	*out = (struct lock){.kind = WAIT_STREAM, .address = f->address, .holder = HOLDER_THREAD, .owner = owner, .evident = true};
	out->number = wait_number_of(f->threads->snap, owner);
	return true;
}

/*
 * Where the condition variable begins, of which the futex is one of two words, in one of the places that they have had in glibc: the
 * function that waits has its address on the stack. 0: not found.
 */
static uint64_t find_condition(const struct futex_wait *f)
{
	static const uint64_t places[] = {32, 36, 40, 44};
	const struct snapshot *snap = f->threads->snap;
	const struct snap_thread *t = f->thread->thread;
	uint64_t stack[128], found = 0;
	size_t n = mem_copy_read(&t->stack, t->regs.v[snap->arch->user_sp], stack, sizeof(stack)) / sizeof(stack[0]);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
			if (stack[i] != f->address - places[k] || stack[i] == found)
				continue;
			if (found)
				return 0; /* it may be either */
			found = stack[i];
		}
	return found;
}

enum { RUST_WRITERS = 4 }; /* where writers of a lock of Rust's wait */

struct lock lock_of_futex(const struct futex_wait *f)
{
	const bool is_64bit = snapshot_arch_of(f->threads->snap, f->thread->thread)->word == 8; /* others have other locks */
	struct lock out;

	if ((f->names.musl || lock_is_rwlock_of_musl(f)) && lock_of_musl(f, &out))
		return out;
	if (is_pi_mutex(f, f->op & (uint32_t)FUTEX_CMD_MASK, &out) || is_join(f, &out))
		return out;
	if (is_64bit && !f->names.own && (is_rwlock(f, &out) || is_mutex(f, &out) || is_stream(f, &out)))
		return out;
	out = (struct lock){.kind = f->names.kind == WAIT_NOTHING || f->names.kind == WAIT_JOIN ? WAIT_FUTEX : f->names.kind, .word = f->address};
	if (f->names.kind == WAIT_CONDITION && is_64bit && f->names.glibc)
		out.address = find_condition(f);
	if (f->names.kind == WAIT_WRITE_LOCK && f->names.own)
		out.address = f->address - RUST_WRITERS;
	return out;
}
