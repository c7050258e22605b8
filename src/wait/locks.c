/* SPDX-License-Identifier: MIT */
#include "wait/locks.h"

#include <linux/futex.h>
#include <string.h>

enum { INNERMOST = 8 }; /* frames that are looked at for the function that waits */

/*
 * Words of glibc's objects, by their position; the same on all 64-bit architectures. Mutex: 0 state, 1 count, 2 owner, 3 users,
 * 4 kind. Lock for readers and writers: 0 readers, 1 writers, 2 and 3 futexes, 4 and 5 unused, 6 writer, 7 shared. FILE's: 0 state, 1 count,
 * 2 and 3 the owner's descriptor.
 */
enum {
	MUTEX_OWNER = 2, MUTEX_USERS = 3, MUTEX_KIND = 4, MUTEX_WORDS = 5,
	RWLOCK_READERS = 0, RWLOCK_PHASE = 2, RWLOCK_WRITERS = 3, RWLOCK_UNUSED = 4, RWLOCK_WRITER = 6, RWLOCK_SHARED = 7,
	STREAM_OWNER = 2, STREAM_WORDS = 4,
};

enum { KIND_ROBUST = 0x10, KIND_PI = 0x20, KIND_SHARED = 0x80, KIND_BITS = 0x3ff }; /* of a mutex */

static const uint32_t LOCKED_AND_AWAITED = 2;
static const uint32_t INCONSISTENT = 0x3fffffff; /* the owner of a robust one has died, and the next has it */
static const uint32_t READ_PHASE = 2, WRITE_PHASE = 3; /* with somebody who waits for the end of it */

/* Functions of C libraries that wait, also inner ones: those that are exported may have jumped to them. */
static const struct {
	const char *name;
	enum wait_kind kind;
} functions[] = {
	{"pthread_mutex_lock", WAIT_MUTEX},
	{"pthread_mutex_lock_full", WAIT_MUTEX},
	{"pthread_mutex_timedlock", WAIT_MUTEX},
	{"pthread_mutex_clocklock", WAIT_MUTEX},
	{"pthread_mutex_cond_lock", WAIT_MUTEX}, /* behind a condition variable */
	{"pthread_mutex_cond_lock_full", WAIT_MUTEX},
	{"mtx_lock", WAIT_MUTEX},
	{"mtx_timedlock", WAIT_MUTEX},
	{"pthread_rwlock_rdlock", WAIT_READ_LOCK},
	{"pthread_rwlock_rdlock_full", WAIT_READ_LOCK},
	{"pthread_rwlock_timedrdlock", WAIT_READ_LOCK},
	{"pthread_rwlock_clockrdlock", WAIT_READ_LOCK},
	{"pthread_rwlock_wrlock", WAIT_WRITE_LOCK},
	{"pthread_rwlock_wrlock_full", WAIT_WRITE_LOCK},
	{"pthread_rwlock_timedwrlock", WAIT_WRITE_LOCK},
	{"pthread_rwlock_clockwrlock", WAIT_WRITE_LOCK},
	{"pthread_cond_wait", WAIT_CONDITION},
	{"pthread_cond_wait_common", WAIT_CONDITION},
	{"pthread_cond_timedwait", WAIT_CONDITION},
	{"pthread_cond_clockwait", WAIT_CONDITION},
	{"cnd_wait", WAIT_CONDITION},
	{"cnd_timedwait", WAIT_CONDITION},
	{"sem_wait", WAIT_SEMAPHORE},
	{"sem_timedwait", WAIT_SEMAPHORE},
	{"sem_clockwait", WAIT_SEMAPHORE},
	{"new_sem_wait", WAIT_SEMAPHORE},
	{"new_sem_wait_slow", WAIT_SEMAPHORE},
	{"pthread_barrier_wait", WAIT_BARRIER},
	{"pthread_once", WAIT_ONCE},
	{"pthread_once_slow", WAIT_ONCE},
	{"pthread_join", WAIT_JOIN},
	{"pthread_timedjoin_np", WAIT_JOIN},
	{"pthread_timedjoin_ex", WAIT_JOIN},
	{"pthread_clockjoin_np", WAIT_JOIN},
	{"pthread_clockjoin_ex", WAIT_JOIN},
	{"thrd_join", WAIT_JOIN},
	{"flockfile", WAIT_STREAM},
};

static enum wait_kind kind_of_function(const char *symbol)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (name_is_library_function(symbol, functions[i].name))
			return functions[i].kind;
	return WAIT_NOTHING;
}

/* What the function waits for that has called the kernel, be it through others of its library; WAIT_NOTHING: it is not known. */
static enum wait_kind kind_by_name(const struct trace_thread *t)
{
	enum wait_kind kind = WAIT_NOTHING;

	for (size_t i = 0; t->user && kind == WAIT_NOTHING && i < t->user->len && i < INNERMOST; i++) {
		const struct frame *frame = &t->user->data[i];

		if (frame->module != t->user->data[0].module)
			break;
		if (frame->symbol)
			kind = kind_of_function(frame->symbol);
	}
	return kind;
}

/* By a function for all of them: then it is something of the program's own. */
static bool is_own_call(const struct trace_thread *t)
{
	return t->user && t->user->len && t->user->data[0].symbol && strcmp(t->user->data[0].symbol, "syscall") == 0;
}

/* By glibc's own code, whose inner functions have no names where it has no symbol table. */
static bool is_glibc_call(const struct trace_thread *t)
{
	const struct module_info *module = t->user && t->user->len ? t->user->data[0].module : NULL;
	const char *slash = module && module->path ? strrchr(module->path, '/') : NULL;

	return slash && !is_own_call(t) && (strncmp(slash, "/libc.so.6", 10) == 0 || strncmp(slash, "/libc-2.", 8) == 0 ||
					    strncmp(slash, "/libpthread", 11) == 0);
}

static void set_owner(const struct futex_wait *f, uint32_t number, struct lock *out)
{
	out->number = number == INCONSISTENT ? 0 : number;
	out->owner = wait_thread_numbered(f->threads, out->number);
	out->holder = !out->number ? HOLDER_NONE : out->owner || out->shared ? HOLDER_THREAD : HOLDER_ENDED;
}

/*
 * The kernel knows the owner of one that inherits priorities: it is the word itself. It is written before that one is woken, so a
 * thread that seems to wait for itself does not; who really takes such a mutex twice is parked elsewhere by glibc.
 */
static bool is_pi_mutex(const struct futex_wait *f, uint32_t op, struct lock *out)
{
	if (op != FUTEX_LOCK_PI && op != FUTEX_LOCK_PI2)
		return false;
	*out = (struct lock){.kind = WAIT_MUTEX, .address = f->address, .shared = !(f->op & FUTEX_PRIVATE_FLAG)};
	if (f->nwords)
		set_owner(f, f->words[0] & FUTEX_TID_MASK, out);
	out->evident = out->owner != f->thread->thread;
	return true;
}

/* The kernel clears the number of a thread that ends, and wakes who waits for that. */
static bool is_join(const struct futex_wait *f, enum wait_kind named, struct lock *out)
{
	const struct snap_thread *other = wait_thread_at(f->threads, f->address);

	const bool exact = other;
	const bool likely = named == WAIT_JOIN || (named == WAIT_NOTHING && is_glibc_call(f->thread) && f->value > WRITE_PHASE);

	if (!other && likely && !(f->op & FUTEX_PRIVATE_FLAG)) {
		other = wait_thread_numbered(f->threads, f->value);
		if (other && other->tid_address)
			return false; /* it would be known */
	}
	if (!other || other == f->thread->thread || wait_number_of(f->threads->snap, other) != f->value ||
	    (f->nwords && f->words[0] != f->value))
		return false;
	*out = (struct lock){.kind = WAIT_JOIN, .word = f->address, .holder = HOLDER_THREAD, .number = f->value, .owner = other,
			     .evident = exact || named == WAIT_JOIN};
	return true;
}

/* By its structure, if a thread of the process owns it; but sure only if glibc itself waits for it. */
static bool is_mutex(const struct futex_wait *f, enum wait_kind named, struct lock *out)
{
	const uint32_t kind = f->nwords >= MUTEX_WORDS ? f->words[MUTEX_KIND] : UINT32_MAX;
	const bool robust = kind & KIND_ROBUST;
	const uint32_t owner = robust ? f->words[0] & FUTEX_TID_MASK : f->words[MUTEX_OWNER];

	if (kind & ~(uint32_t)KIND_BITS || kind & KIND_PI || (named != WAIT_NOTHING && named != WAIT_MUTEX))
		return false;
	if (robust ? !(f->value & FUTEX_WAITERS) : f->value != LOCKED_AND_AWAITED)
		return false;
	if (named != WAIT_MUTEX && (!f->words[MUTEX_USERS] || !wait_thread_numbered(f->threads, owner)))
		return false;
	*out = (struct lock){.kind = WAIT_MUTEX, .address = f->address, .evident = named == WAIT_MUTEX || is_glibc_call(f->thread)};
	/* A robust one always has that bit; but the kernel sees to it that nobody waits for an owner that has ended. */
	out->shared = robust ? !wait_thread_numbered(f->threads, owner) : kind & KIND_SHARED;
	set_owner(f, owner, out);
	return true;
}

/*
 * Which word of the lock it is: writers wait for the phase of readers to end, behind each other at a futex of theirs; readers for the phase
 * of writers to end, or, where writers go first, for the count of readers to change.
 */
static unsigned place_in_rwlock(const struct futex_wait *f, enum wait_kind named)
{
	if (named == WAIT_WRITE_LOCK)
		return f->value == READ_PHASE ? RWLOCK_PHASE : f->value == WRITE_PHASE ? RWLOCK_WRITERS : UINT32_MAX;
	return f->value == WRITE_PHASE ? RWLOCK_PHASE : RWLOCK_READERS;
}

/* Readers are only counted. */
static bool is_rwlock(const struct futex_wait *f, enum wait_kind named, struct lock *out)
{
	const unsigned place = place_in_rwlock(f, named);
	uint32_t lock[RWLOCK_SHARED + 1] = {0}; /* from the futex on */

	if (named != WAIT_READ_LOCK && named != WAIT_WRITE_LOCK)
		return false;
	*out = (struct lock){.kind = named, .word = f->address};
	if (place > RWLOCK_WRITERS || f->nwords <= RWLOCK_SHARED - place)
		return true;
	memcpy(lock + place, f->words, (RWLOCK_SHARED + 1 - place) * sizeof(lock[0]));
	if (lock[RWLOCK_SHARED] > 1 || lock[RWLOCK_UNUSED] || lock[RWLOCK_UNUSED + 1])
		return true;
	out->address = f->address - 4 * place;
	out->shared = lock[RWLOCK_SHARED];
	out->evident = true;
	set_owner(f, lock[RWLOCK_WRITER], out);
	if (!lock[RWLOCK_WRITER] && named == WAIT_WRITE_LOCK)
		out->holder = HOLDER_READERS;
	return true;
}

/* From the beginning of glibc's descriptor to the thread's number in it. */
static uint64_t number_in_descriptor(const struct snapshot *snap)
{
	return snap->arch->id == ARCH_X86_64 ? 720 : snap->arch->id == ARCH_AARCH64 ? 208 : 0;
}

static bool is_stream(const struct futex_wait *f, enum wait_kind named, struct lock *out)
{
	const struct snap_thread *owner;
	uint64_t descriptor;

	if (f->nwords < STREAM_WORDS || f->value != LOCKED_AND_AWAITED || (named != WAIT_NOTHING && named != WAIT_STREAM))
		return false;
	memcpy(&descriptor, &f->words[STREAM_OWNER], sizeof(descriptor));
	owner = wait_thread_at(f->threads, descriptor + number_in_descriptor(f->threads->snap));
	if (!owner)
		return false;
	*out = (struct lock){.kind = WAIT_STREAM, .address = f->address, .holder = HOLDER_THREAD, .owner = owner, .evident = true};
	out->number = wait_number_of(f->threads->snap, owner);
	return true;
}

struct lock lock_of_futex(const struct futex_wait *f)
{
	const bool is_64bit = snapshot_arch_of(f->threads->snap, f->thread->thread)->word == 8; /* others have other locks */
	const enum wait_kind named = kind_by_name(f->thread);
	struct lock out;

	if (is_pi_mutex(f, f->op & (uint32_t)FUTEX_CMD_MASK, &out) || is_join(f, named, &out))
		return out;
	if (is_64bit && !is_own_call(f->thread) && (is_rwlock(f, named, &out) || is_mutex(f, named, &out) || is_stream(f, named, &out)))
		return out;
	return (struct lock){.kind = named == WAIT_NOTHING || named == WAIT_JOIN ? WAIT_FUTEX : named, .word = f->address};
}
