/* SPDX-License-Identifier: MIT */
#include "wait/waits.h"

#include <linux/futex.h>
#include <string.h>

#include "target/thread_copies.h"
#include "wait/descriptors.h"
#include "wait/go_waits.h"
#include "wait/locks.h"
#include "wait/parked.h"
#include "wait/ready.h"
#include "wait/runtime_locks.h"
#include "wait/shared.h"
#include "wait/states.h"
#include "wait/stillness.h"
#include "wait/threads.h"
#include "wait/time_left.h"

struct waits {
	const struct trace *trace;
	struct wait_threads threads;
	struct thread_copies copies;
	struct u64map on_descriptors;
	struct kernel_wait last;
	const struct stack *named; /* the last stack that was asked for what its names tell of a futex, */
	struct lock_names names;   /* and that */
	struct u64map again; /* address → position among the snapshot's copies of what was read again, for all threads */
};

static bool is_futex_wait(uint32_t op)
{
	op &= (uint32_t)FUTEX_CMD_MASK;
	return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET || op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2;
}

/* What threads wait for is read again where a runtime has a lock for all: see stays_where_it_is(). */
static bool find_again(struct waits *waits, const struct snapshot *snap)
{
	for (size_t i = 0; i < snap->copies.len; i++) {
		const struct snap_copy *copy = &snap->copies.data[i];
		bool created;
		uint64_t *slot = copy->tid || copy->copy.len != WAIT_BYTES ? NULL : u64map_put(&waits->again, copy->copy.start, &created);

		if (slot)
			*slot = i;
		else if (!copy->tid && copy->copy.len == WAIT_BYTES)
			return false;
	}
	return true;
}

/* As it was at the last look; false: the thread has run since, or nobody read it. */
static bool read_again(const struct waits *waits, const struct snap_thread *t, struct futex_wait *f)
{
	const uint64_t *slot = stillness_lasts(&waits->threads, t) ? u64map_find(&waits->again, f->address) : NULL;

	return slot && mem_copy_read(&waits->trace->snap->copies.data[*slot].copy, f->address, f->words, sizeof(f->words)) == sizeof(f->words);
}

/* Be it that it was interrupted, and goes on. */
static bool is_futex(const struct trace_thread *t)
{
	bool restarted;
	const struct syscall_info *call;

	if (t->thread->syscall.state != SYSCALL_IN)
		return false;
	if (arch_is_futex(snapshot_arch_of(t->snap, t->thread), t->thread->syscall.nr))
		return true;
	call = trace_thread_call(t, &restarted);
	return restarted && strcmp(call->name, "futex") == 0;
}

/* Threads of a pool have the same stack. */
static struct lock_names names_of(struct waits *waits, const struct stack *user)
{
	if (user != waits->named || !user) {
		waits->named = user;
		waits->names = lock_names_of(user);
	}
	return waits->names;
}

/* False: it does not wait for one. */
static bool read_futex_wait(struct waits *waits, const struct trace_thread *t, struct mem *mem, struct futex_wait *out)
{
	const struct snap_syscall *syscall = &t->thread->syscall;
	ssize_t got;

	if (!is_futex(t) || !is_futex_wait((uint32_t)syscall->args[1]))
		return false;
	*out = (struct futex_wait){
		.threads = &waits->threads,
		.thread = t,
		.address = syscall->args[0],
		.op = (uint32_t)syscall->args[1],
		.value = (uint32_t)syscall->args[2],
		.names = names_of(waits, t->user),
	};
	got = mem->read(mem, out->address, out->words, sizeof(out->words));
	out->nwords = got > 0 ? (unsigned)got / sizeof(out->words[0]) : 0;
	out->again = out->nwords == WAIT_BYTES / sizeof(out->words[0]) && read_again(waits, t->thread, out);
	return true;
}

/* Where it is, in terms of a file whose variable it is: those without a value in the file follow those that have one. */
static void find_place(const struct snapshot *snap, struct wait *w)
{
	const uint64_t address = w->address ? w->address : w->word;
	const struct map_entry *map = maps_find(&snap->maps, address);

	if (map && map > snap->maps.data && !map->inode && !map->path[0] && map[-1].end == map->start && map[-1].perms & MAP_PERM_WRITE)
		map--;
	if (!map || !map->inode || map->perms & MAP_PERM_SHARED)
		return;
	w->path = map->path;
	w->offset = address - map->start + map->offset;
}

static const struct trace_thread *trace_of(const struct waits *waits, const struct snap_thread *thread)
{
	return &waits->trace->threads.data[thread - waits->trace->snap->threads.data];
}

/*
 * Who waits for Python's lock gets up every few milliseconds, and goes on waiting as long as another thread has it. If that one has not run
 * from before it was seen to wait until the last look, it had the lock all the while, and who waits for it was where it was.
 */
static bool stays_where_it_is(const struct waits *waits, const struct snap_thread *thread)
{
	const struct runtime_wait *told = &trace_of(waits, thread)->told;
	const struct snap_thread *holder = told->kind == WAIT_GIL && told->holder == HOLDER_THREAD && !told->doubtful
						   ? wait_thread_with_tid(&waits->threads, told->owner)
						   : NULL;

	return holder && thread->still != STILL_NEVER && holder->read_in <= thread->read_in && stillness_lasts(&waits->threads, holder);
}

/*
 * What several processes share may have the number of an owner in another pid namespace: whether one of such a namespace has the memory was
 * looked up. Of a lock that is shared, in memory that is not known to be, it was not: it may be a copy from before a fork into this namespace.
 */
static bool is_number_doubtful(const struct trace_thread *t, const struct lock *lock)
{
	if (wait_shared_map(t->snap, lock->address ? lock->address : lock->word))
		return t->snap->has_doubtful_numbers;
	return lock->shared && t->snap->inner_pid;
}

static bool is_certain(const struct waits *waits, const struct trace_thread *t, const struct futex_wait *futex, const struct lock *lock)
{
	const struct snap_thread *owner = lock->owner;

	if (!owner || !lock->evident || is_number_doubtful(t, lock))
		return false;
	if (!futex->again)
		return stillness_of_capture(t->thread, owner);
	return stillness_of_last_look(&waits->threads, t->thread, owner) || (!t->thread->woken && stays_where_it_is(waits, owner));
}

static const struct snap_outsider *outsider_numbered(const struct snapshot *snap, uint32_t number)
{
	for (size_t i = 0; i < snap->outsiders.len; i++)
		if (snap->outsiders.data[i].number == number)
			return &snap->outsiders.data[i];
	return NULL;
}

/* The process itself has the memory of its locks, of which some that are shared may have numbers of other namespaces. */
static bool is_owner(const struct snapshot *snap, const struct snap_outsider *o, bool is_shared)
{
	const bool is_own = o->pid == snap->pid;

	return is_shared ? (is_own || o->shares_memory) && !snap->has_doubtful_numbers : is_own || o->same_memory;
}

/*
 * A number that is no thread of the snapshot: one that was not looked at, or another process's, if both share the memory that the lock is in; else who
 * had it was one of its own, or of its parent, and nobody else has that memory, but after vfork().
 */
static void find_outsider(const struct snapshot *snap, struct wait *w)
{
	const bool is_shared = w->holder == HOLDER_THREAD && wait_shared_map(snap, w->address ? w->address : w->word);
	const struct snap_outsider *o;

	if (w->holder != HOLDER_ENDED && (w->holder != HOLDER_THREAD || w->owner_pid || !w->shared))
		return;
	o = outsider_numbered(snap, (uint32_t)w->owner);
	w->holder = is_shared ? HOLDER_THREAD : HOLDER_ENDED;
	w->owner_lives = !is_shared && o;
	if (!o || !is_owner(snap, o, is_shared))
		return;
	w->holder = HOLDER_THREAD;
	w->owner = o->tid;
	w->owner_pid = o->pid;
	w->owner_comm = o->comm;
}

static struct wait wait_for_lock(const struct waits *waits, const struct trace_thread *t, const struct futex_wait *futex, const struct lock *lock)
{
	return (struct wait){
		.kind = lock->kind,
		.address = lock->address,
		.word = lock->word,
		.holder = lock->holder,
		.owner = lock->owner ? lock->owner->tid : (pid_t)lock->number,
		.owner_pid = lock->owner ? t->snap->pid : 0,
		.mutex = lock->mutex,
		.count = lock->count,
		.shared = lock->shared,
		.evident = lock->evident,
		.certain = is_certain(waits, t, futex, lock),
	};
}

/* Runtimes wait by futexes, also for what a call with a time limit goes on with after a stop. */
static bool may_be_of_runtime(const struct trace_thread *t)
{
	const struct arch *arch = snapshot_arch_of(t->snap, t->thread);
	const struct snap_syscall *syscall = &t->thread->syscall;

	return syscall->state == SYSCALL_IN && ((arch_is_futex(arch, syscall->nr) && is_futex_wait((uint32_t)syscall->args[1])) ||
						(t->told.kind && arch_is_restart(arch, syscall->nr)));
}

/* By name, or in glibc's code, where the function that waits for such a mutex has none without debug info. */
static bool may_be_parked(const struct futex_wait *f)
{
	return f->names.kind == WAIT_MUTEX || (f->names.kind == WAIT_NOTHING && f->names.glibc);
}

static struct lock find_lock_of(struct waits *waits, struct futex_wait *f)
{
	struct lock lock;

	if (may_be_parked(f) && parked_find(f, &waits->again, &lock))
		return lock;
	lock = lock_of_futex(f);
	if (lock.kind == WAIT_MUTEX && parked_is(f->threads->snap, f->thread->thread)) {
		lock.word = 0; /* which says nothing */
		lock.mutex.inherits = true;
	}
	return lock;
}

/* A mutex that says who has it is what is waited for, whatever the functions are called that lead there. */
static bool find_lock(struct waits *waits, struct trace_thread *t, struct mem *mem)
{
	const bool is_runtimes = may_be_of_runtime(t);
	struct futex_wait futex;
	struct lock lock = {0};
	bool in_futex;

	if (is_runtimes && runtime_lock_find(&waits->threads, t, &t->wait))
		return true;
	in_futex = read_futex_wait(waits, t, mem, &futex);
	if (in_futex)
		lock = find_lock_of(waits, &futex);
	if (is_runtimes && !(lock.owner && lock.evident) && runtime_lock_by_frames(t, &t->wait))
		return true;
	if (!in_futex)
		return false;
	t->wait = wait_for_lock(waits, t, &futex, &lock);
	find_place(t->snap, &t->wait);
	find_outsider(t->snap, &t->wait);
	return true;
}

/*
 * What ends by itself, whatever it waits for. One that is stopped or frozen does not go on when its time is over; nor does one that only
 * looks from time to time whether it has got what a runtime has for it.
 */
static void find_time_left(struct trace_thread *t, struct mem *mem)
{
	const struct time_limit limit = time_limit_of(t, mem);

	if (t->wait.kind && t->wait.kind == t->told.kind && t->told.endless)
		return;
	if (t->wait.kind == WAIT_STOPPED || t->wait.kind == WAIT_TRACED || t->wait.kind == WAIT_FROZEN || t->wait.kind == WAIT_REAPER)
		return;
	if (t->wait.timed && !limit.limited)
		return; /* that there is a limit is known, but not which */
	t->wait.timed = limit.limited;
	t->wait.state.left = limit.left;
	t->wait.state.left_ns = limit.left_ns;
}

/* Where a descriptor leads to what the kernel waits for, the descriptor tells more. */
static void join_descriptor(struct waits *waits, struct trace_thread *t)
{
	const struct wait by_kernel = t->wait;

	if (by_kernel.kind < WAIT_DISK || by_kernel.kind > WAIT_KERNEL_LOCK || by_kernel.kind == WAIT_SECCOMP || by_kernel.state.in_fault ||
	    !wait_on_descriptors(t, &waits->on_descriptors, &t->wait))
		return;
	t->wait.state = by_kernel.state;
	t->wait.state.medium = by_kernel.kind;
	/* What a path seems to be on is not what it leads to, if there is a symbolic link in it. */
	if (t->wait.kind == WAIT_OPEN && by_kernel.state.filesystem && wait_medium_of(by_kernel.state.filesystem) != by_kernel.kind)
		t->wait.state.filesystem = t->wait.state.device = NULL;
}

static bool find_wait(struct waits *waits, struct trace_thread *t)
{
	struct thread_copies_mem mem;

	t->wait = (struct wait){0};
	if (!state_wait_by_kernel(t, &waits->last) && (t->thread->state == 'R' || t->thread->status != THREAD_CAPTURED))
		return true;
	if (!thread_copies_mem_init(&mem, &waits->copies, t->snap, t->thread))
		return false;
	join_descriptor(waits, t);
	if (!t->wait.kind && !go_wait_find(t) && !find_lock(waits, t, &mem.mem) && !state_wait_by_call(t, &mem.mem))
		wait_on_descriptors(t, &waits->on_descriptors, &t->wait);
	t->wait.for_goroutines = t->wait.kind == WAIT_EVENTS && go_is_polling(t->user);
	if (t->thread->state != 'R')
		find_time_left(t, &mem.mem);
	return true;
}

bool waits_find(struct trace *trace)
{
	struct waits waits = {.trace = trace};
	bool ok = wait_threads_init(&waits.threads, trace->snap) && descriptor_waits_index(trace->snap, &waits.on_descriptors) &&
		  find_again(&waits, trace->snap);

	for (size_t i = 0; ok && i < trace->threads.len; i++)
		ok = find_wait(&waits, &trace->threads.data[i]);
	wait_threads_deinit(&waits.threads);
	u64map_deinit(&waits.on_descriptors);
	thread_copies_deinit(&waits.copies);
	u64map_deinit(&waits.again);
	return ok;
}

void waits_find_among(struct trace *const *traces, size_t n)
{
	waits_find_shared(traces, n);
	waits_settle_ready(traces, n);
}
