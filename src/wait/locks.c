/* SPDX-License-Identifier: MIT */
#include "wait/locks.h"

#include <linux/futex.h>
#include <string.h>

enum { INNERMOST = 8 }; /* frames that are looked at for the function that waits */

/*
 * Words of glibc's objects, by their position. The same on all 64-bit architectures, and from 2.31 to 2.43 at least: mutex: 0 state,
 * 1 count, 2 owner, 3 users, 4 kind. Lock for readers and writers: 0 readers, 2 and 3 futexes, 6 writer, 7 shared. FILE's: 0 state,
 * 1 count, 2 and 3 the owner's descriptor.
 */
enum {
	MUTEX_OWNER = 2, MUTEX_USERS = 3, MUTEX_KIND = 4, MUTEX_WORDS = 5,
	RWLOCK_PHASE = 2, RWLOCK_WRITERS = 3, RWLOCK_UNUSED = 4, RWLOCK_WRITER = 6, RWLOCK_SHARED = 7,
	STREAM_OWNER = 2, STREAM_WORDS = 4,
};

/* Of a mutex. */
enum { KIND_TYPES = 3, KIND_ROBUST = 0x10, KIND_PI = 0x20, KIND_PROTECT = 0x40, KIND_SHARED = 0x80, KIND_BITS = 0x3ff };

static const uint32_t LOCKED_AND_AWAITED = 2;
static const uint32_t INCONSISTENT = 0x7fffffff; /* the owner of a robust one has died, and the next has it */

/* Functions that wait, as glibc exports them; longer names before their beginnings. */
static const struct {
	const char *name;
	enum wait_kind kind;
} functions[] = {
	{"pthread_mutex_", WAIT_MUTEX},
	{"pthread_rwlock_rdlock", WAIT_READ_LOCK},
	{"pthread_rwlock_timedrdlock", WAIT_READ_LOCK},
	{"pthread_rwlock_clockrdlock", WAIT_READ_LOCK},
	{"pthread_rwlock_wrlock", WAIT_WRITE_LOCK},
	{"pthread_rwlock_timedwrlock", WAIT_WRITE_LOCK},
	{"pthread_rwlock_clockwrlock", WAIT_WRITE_LOCK},
	{"pthread_cond_", WAIT_CONDITION},
	{"cnd_", WAIT_CONDITION},
	{"mtx_", WAIT_MUTEX},
	{"sem_wait", WAIT_SEMAPHORE},
	{"sem_timedwait", WAIT_SEMAPHORE},
	{"sem_clockwait", WAIT_SEMAPHORE},
	{"new_sem_wait", WAIT_SEMAPHORE},
	{"pthread_barrier_wait", WAIT_BARRIER},
	{"pthread_once", WAIT_ONCE},
	{"pthread_join", WAIT_JOIN},
	{"pthread_timedjoin", WAIT_JOIN},
	{"pthread_clockjoin", WAIT_JOIN},
	{"flockfile", WAIT_STREAM},
	{"ftrylockfile", WAIT_STREAM},
};

static enum wait_kind kind_of_function(const char *name)
{
	name += strspn(name, "_");
	if (strncmp(name, "GI_", 3) == 0)
		name += 3 + strspn(name + 3, "_");
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strncmp(name, functions[i].name, strlen(functions[i].name)) == 0)
			return functions[i].kind;
	return WAIT_NOTHING;
}

/* What the innermost of its functions that is known waits for; WAIT_NOTHING: none is. */
static enum wait_kind kind_by_name(const struct trace_thread *t)
{
	enum wait_kind kind = WAIT_NOTHING;

	for (size_t i = 0; t->user && kind == WAIT_NOTHING && i < t->user->len && i < INNERMOST; i++)
		if (t->user->data[i].symbol)
			kind = kind_of_function(t->user->data[i].symbol);
	return kind;
}

/* The process's thread of that number, as the process itself numbers it. */
static const struct snap_thread *find_thread(const struct futex_wait *f, uint32_t number)
{
	const struct snapshot *snap = f->trace->snap;

	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];

		if ((uint32_t)(t->inner_tid ? t->inner_tid : t->tid) == number)
			return t;
	}
	return NULL;
}

/* The thread whose number is cleared at that address when it ends. */
static const struct snap_thread *find_ending_at(const struct futex_wait *f, uint64_t address)
{
	const struct snapshot *snap = f->trace->snap;

	for (size_t i = 0; i < snap->threads.len; i++)
		if (snap->threads.data[i].tid_address && snap->threads.data[i].tid_address == address)
			return &snap->threads.data[i];
	return NULL;
}

/* The thread whose descriptor, which holds that number, begins there. */
static const struct snap_thread *find_described_at(const struct futex_wait *f, uint64_t address)
{
	enum { DESCRIPTOR = 2048 };
	const struct snapshot *snap = f->trace->snap;

	for (size_t i = 0; i < snap->threads.len; i++)
		if (snap->threads.data[i].tid_address > address && snap->threads.data[i].tid_address - address < DESCRIPTOR)
			return &snap->threads.data[i];
	return NULL;
}

static void set_owner(const struct futex_wait *f, uint32_t number, struct wait *out)
{
	out->owner = (pid_t)number;
	out->holder = !number || number == INCONSISTENT ? HOLDER_NONE : find_thread(f, number) || out->shared ? HOLDER_THREAD : HOLDER_ENDED;
	if (out->holder == HOLDER_NONE)
		out->owner = 0;
}

/* The kernel knows the owner of one that inherits priorities: it is the word itself. */
static bool is_pi_mutex(const struct futex_wait *f, uint32_t op, struct wait *out)
{
	if (op != FUTEX_LOCK_PI && op != FUTEX_LOCK_PI2)
		return false;
	out->kind = WAIT_MUTEX;
	out->address = f->address;
	out->shared = !(f->op & FUTEX_PRIVATE_FLAG);
	set_owner(f, f->nwords ? f->words[0] & FUTEX_TID_MASK : 0, out);
	return true;
}

static bool is_join(const struct futex_wait *f, struct wait *out)
{
	const struct snap_thread *other = find_ending_at(f, f->address);

	/* The kernel wakes those of other processes, too. Locks that hold their owner's number have another bit set in it. */
	if (!other && !(f->op & FUTEX_PRIVATE_FLAG))
		other = find_thread(f, f->value);
	if (!other || (uint32_t)(other->inner_tid ? other->inner_tid : other->tid) != f->value)
		return false;
	out->kind = WAIT_JOIN;
	out->word = f->address;
	out->holder = HOLDER_THREAD;
	out->owner = (pid_t)f->value;
	return true;
}

/* By its structure alone: a thread of the process, or a function that says so, stands behind it. */
static bool is_mutex(const struct futex_wait *f, enum wait_kind named, struct wait *out)
{
	const uint32_t kind = f->nwords >= MUTEX_WORDS ? f->words[MUTEX_KIND] : UINT32_MAX;
	const bool robust = kind & KIND_ROBUST;
	const uint32_t owner = f->words[MUTEX_OWNER];

	if (kind & ~(uint32_t)KIND_BITS || kind & KIND_PI || (named != WAIT_NOTHING && named != WAIT_MUTEX && named != WAIT_CONDITION))
		return false;
	if (robust ? !(f->value & FUTEX_WAITERS) : f->value != LOCKED_AND_AWAITED)
		return false;
	if (named != WAIT_MUTEX && (!f->words[MUTEX_USERS] || !find_thread(f, owner)))
		return false;
	out->kind = WAIT_MUTEX;
	out->address = f->address;
	/* A robust one always has that bit; but the kernel sees to it that nobody waits for an owner that has ended. */
	out->shared = robust ? !find_thread(f, f->value & FUTEX_TID_MASK) : kind & KIND_SHARED;
	set_owner(f, robust ? f->value & FUTEX_TID_MASK : owner, out);
	return true;
}

/* Whether the futex is that word of one that a writer has: what lies behind it is then known. */
static bool has_writer(const struct futex_wait *f, unsigned place)
{
	if (f->nwords <= RWLOCK_SHARED - place || f->words[RWLOCK_SHARED - place] > 1 || !f->words[RWLOCK_WRITER - place])
		return false;
	return !f->words[RWLOCK_UNUSED - place] && !f->words[RWLOCK_UNUSED + 1 - place];
}

/* Readers are only counted. The futex is that of the phase, or that of writers, or the count itself. */
static bool is_rwlock(const struct futex_wait *f, enum wait_kind named, struct wait *out)
{
	static const unsigned places[] = {RWLOCK_WRITERS, RWLOCK_PHASE, 0};

	if (named != WAIT_READ_LOCK && named != WAIT_WRITE_LOCK)
		return false;
	out->kind = named;
	out->word = f->address;
	out->holder = HOLDER_READERS;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!has_writer(f, places[i]))
			continue;
		out->address = f->address - 4 * places[i];
		out->shared = f->words[RWLOCK_SHARED - places[i]];
		set_owner(f, f->words[RWLOCK_WRITER - places[i]], out);
		return true;
	}
	return true;
}

static bool is_stream(const struct futex_wait *f, enum wait_kind named, struct wait *out)
{
	const struct snap_thread *owner;
	uint64_t descriptor;

	if (f->nwords < STREAM_WORDS || f->value != LOCKED_AND_AWAITED || (named != WAIT_NOTHING && named != WAIT_STREAM))
		return false;
	memcpy(&descriptor, &f->words[STREAM_OWNER], sizeof(descriptor));
	owner = find_described_at(f, descriptor);
	if (!owner)
		return false;
	out->kind = WAIT_STREAM;
	out->address = f->address;
	out->holder = HOLDER_THREAD;
	out->owner = owner->inner_tid ? owner->inner_tid : owner->tid;
	return true;
}

void lock_of_futex(const struct futex_wait *f, struct wait *out)
{
	const uint32_t op = f->op & (uint32_t)FUTEX_CMD_MASK;
	enum wait_kind named;

	if (is_pi_mutex(f, op, out))
		return;
	named = kind_by_name(f->thread);
	if (is_join(f, out) || is_rwlock(f, named, out) || is_mutex(f, named, out) || is_stream(f, named, out))
		return;
	out->word = f->address;
	out->kind = named == WAIT_NOTHING || named == WAIT_JOIN ? WAIT_FUTEX : named;
	out->holder = HOLDER_NOT_RECORDED;
}
