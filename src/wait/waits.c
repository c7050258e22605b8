/* SPDX-License-Identifier: MIT */
#include "wait/waits.h"

#include <linux/futex.h>
#include <string.h>

#include "target/thread_copies.h"
#include "wait/descriptors.h"
#include "wait/locks.h"
#include "wait/shared.h"
#include "wait/states.h"
#include "wait/threads.h"
#include "wait/time_left.h"

struct waits {
	struct wait_threads threads;
	struct thread_copies copies;
	struct u64map on_descriptors;
	struct kernel_wait last;
};

static bool is_futex_wait(uint32_t op)
{
	op &= (uint32_t)FUTEX_CMD_MASK;
	return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET || op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2;
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
	};
	got = mem->read(mem, out->address, out->words, sizeof(out->words));
	out->nwords = got > 0 ? (unsigned)got / sizeof(out->words[0]) : 0;
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

/* What several processes share may have the number of an owner in another pid namespace. */
static bool is_certain(const struct snapshot *snap, const struct snap_thread *t, const struct lock *lock)
{
	const bool is_shared = wait_shared_map(snap, lock->address ? lock->address : lock->word);

	if (!lock->owner || !lock->evident || (lock->shared && snap->inner_pid) || (is_shared && snap->has_doubtful_numbers))
		return false;
	return wait_is_of_one_instant(t, lock->owner);
}

/* A number that is no thread of the process: another one's, if both share that memory; else who had it was one of its own, or of its parent. */
static void find_stranger(const struct snapshot *snap, struct wait *w)
{
	if (w->holder != HOLDER_THREAD || w->owner_pid || !w->shared)
		return;
	if (!wait_shared_map(snap, w->address ? w->address : w->word)) {
		w->holder = HOLDER_ENDED;
		return;
	}
	for (size_t i = 0; !snap->has_doubtful_numbers && i < snap->strangers.len; i++)
		if (snap->strangers.data[i].number == (uint32_t)w->owner) {
			w->owner_pid = snap->strangers.data[i].pid;
			w->owner_comm = snap->strangers.data[i].comm;
		}
}

static struct wait wait_for_lock(const struct trace_thread *t, const struct lock *lock)
{
	return (struct wait){
		.kind = lock->kind,
		.address = lock->address,
		.word = lock->word,
		.holder = lock->holder,
		.owner = lock->owner ? lock->owner->tid : (pid_t)lock->number,
		.owner_pid = lock->owner ? t->snap->pid : 0,
		.shared = lock->shared,
		.evident = lock->evident,
		.certain = is_certain(t->snap, t->thread, lock),
	};
}

static bool find_lock(struct waits *waits, struct trace_thread *t, struct mem *mem)
{
	struct futex_wait futex;
	struct lock lock;

	if (!read_futex_wait(waits, t, mem, &futex))
		return false;
	lock = lock_of_futex(&futex);
	t->wait = wait_for_lock(t, &lock);
	find_place(t->snap, &t->wait);
	find_stranger(t->snap, &t->wait);
	return true;
}

/* What ends by itself, whatever it waits for. One that is stopped or frozen does not go on when its time is over. */
static void find_time_left(struct trace_thread *t, struct mem *mem)
{
	const struct time_limit limit = time_limit_of(t, mem);

	if (t->wait.kind == WAIT_STOPPED || t->wait.kind == WAIT_TRACED || t->wait.kind == WAIT_FROZEN || t->wait.kind == WAIT_REAPER)
		return;
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
	if (!t->wait.kind && !find_lock(waits, t, &mem.mem) && !state_wait_by_call(t, &mem.mem))
		wait_on_descriptors(t, &waits->on_descriptors, &t->wait);
	if (t->thread->state != 'R')
		find_time_left(t, &mem.mem);
	return true;
}

bool waits_find(struct trace *trace)
{
	struct waits waits = {0};
	bool ok = wait_threads_init(&waits.threads, trace->snap) && descriptor_waits_index(trace->snap, &waits.on_descriptors);

	for (size_t i = 0; ok && i < trace->threads.len; i++)
		ok = find_wait(&waits, &trace->threads.data[i]);
	wait_threads_deinit(&waits.threads);
	u64map_deinit(&waits.on_descriptors);
	thread_copies_deinit(&waits.copies);
	return ok;
}
