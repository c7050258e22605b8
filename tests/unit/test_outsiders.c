/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "lock_memory.h"
#include "target/outsiders.h"

enum { LOCK = 0x5000 };

/* A process that has ended, whose number nobody else gets so soon. */
static uint32_t number_of_nobody(void)
{
	const pid_t pid = child_start(child_sleeps);

	child_end(pid);
	return (uint32_t)pid;
}

/* A snapshot of this process with one thread. */
static struct snapshot *start(pid_t pid, struct process *process)
{
	struct snapshot *snap = snapshot_create(pid, arch_host());

	assert_non_null(snap);
	assert_int_equal(process_open(pid, NULL, process), 0);
	return snap;
}

static void finish(struct snapshot *snap, struct process *process)
{
	process_close(process);
	snapshot_destroy(snap);
}

static const struct snap_outsider *find(struct snapshot *snap, const struct process *process)
{
	struct sharers sharers;

	sharers_find(process, snap, &sharers);
	outsiders_find(process, &sharers, snap);
	return snap->outsiders.len ? &snap->outsiders.data[snap->outsiders.len - 1] : NULL;
}

static void test_parent(void **state)
{
	const pid_t child = child_start(child_sleeps);
	const struct snap_outsider *o;
	struct process process;
	struct snapshot *snap = start(child, &process);

	assert_true(lock_memory_add(snap, child, LOCK, (uint32_t)getpid()));
	o = find(snap, &process);
	assert_non_null(o);
	assert_int_equal(o->number, getpid());
	assert_true(o->tid == getpid() && o->pid == getpid());
	assert_string_equal(o->comm, "test_outsiders");
	assert_false(o->same_memory || o->shares_memory);
	finish(snap, &process);
	child_end(child);
}

/* The first process has that number, and in a container it may fork as any other does. */
static void test_first_process(void **state)
{
	const pid_t child = child_start(child_sleeps);
	struct process process;
	struct snapshot *snap = start(child, &process);

	assert_true(lock_memory_add(snap, child, LOCK, 1));
	if (access("/proc/1/status", F_OK) == 0)
		assert_int_equal(find(snap, &process)->pid, 1);
	finish(snap, &process);
	child_end(child);
}

static void test_nobody(void **state)
{
	const pid_t child = child_start(child_sleeps);
	struct process process;
	struct snapshot *snap = start(child, &process);

	assert_true(lock_memory_add(snap, child, LOCK, number_of_nobody()));
	assert_true(lock_memory_add(snap, child + 1, LOCK + 0x100, (uint32_t)child)); /* its own */
	assert_null(find(snap, &process));
	finish(snap, &process);
	child_end(child);
}

static int told[2], ending[2]; /* pipes */

static void *tell_and_wait(void *arg)
{
	const pid_t tid = (pid_t)syscall(SYS_gettid);
	char byte;

	pthread_setname_np(pthread_self(), "unwanted");
	assert_int_equal(write(told[1], &tid, sizeof(tid)), sizeof(tid));
	assert_int_equal(read(ending[0], &byte, 1), 0);
	return arg;
}

/* Only some threads were wanted, and the owner is another one. */
static void test_own_thread(void **state)
{
	const struct snap_outsider *o;
	struct process process;
	struct snapshot *snap = start(getpid(), &process);
	pthread_t thread;
	pid_t tid;

	assert_true(pipe(told) == 0 && pipe(ending) == 0);
	assert_int_equal(pthread_create(&thread, NULL, tell_and_wait, NULL), 0);
	assert_int_equal(read(told[0], &tid, sizeof(tid)), sizeof(tid));
	assert_true(lock_memory_add(snap, getpid(), LOCK, (uint32_t)tid));
	o = find(snap, &process);
	assert_non_null(o);
	assert_true(o->tid == tid && o->pid == getpid());
	assert_string_equal(o->comm, "unwanted");
	assert_false(o->same_memory || o->shares_memory); /* of others that is said */
	close(ending[1]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(ending[0]);
	close(told[0]);
	close(told[1]);
	finish(snap, &process);
}

/* However many wait, a number is looked up once; and not more of them than a snapshot has room for. */
static void test_many(void **state)
{
	const uint32_t nobody = number_of_nobody();

	for (uint32_t n = MAX_OUTSIDERS - 1; n <= MAX_OUTSIDERS; n++) {
		const pid_t child = child_start(child_sleeps);
		struct process process;
		struct snapshot *snap = start(child, &process);

		for (uint32_t i = 0; i < 1000; i++) /* beyond what the kernel gives */
			assert_true(lock_memory_add(snap, child + (pid_t)i, LOCK + i * 0x100, i % 2 ? nobody : 0x1000000 + i / 2 % (n - 1)));
		assert_true(lock_memory_add(snap, child + 1000, 0x100000, (uint32_t)getpid()));
		assert_int_equal(find(snap, &process) != NULL, n < MAX_OUTSIDERS);
		finish(snap, &process);
		child_end(child);
	}
}

static int sleep_with_the_same_memory(void *arg)
{
	for (;;)
		pause();
	return arg != NULL;
}

static void test_same_memory(void **state)
{
	enum { STACK = 64 * 1024 };
	uint8_t *stack = malloc(STACK);
	const pid_t child = clone(sleep_with_the_same_memory, stack + STACK, CLONE_VM | SIGCHLD, NULL);
	const bool can_compare = syscall(SYS_kcmp, getpid(), getpid(), KCMP_VM, 0UL, 0UL) == 0;
	struct process process;
	struct snapshot *snap;

	assert_true(child > 0);
	snap = start(child, &process);
	assert_true(lock_memory_add(snap, child, LOCK, (uint32_t)getpid()));
	assert_int_equal(find(snap, &process)->same_memory, can_compare);
	finish(snap, &process);
	child_end(child);
	free(stack);
}

static void *shared;

static void unmap_and_sleep(void)
{
	munmap(shared, 4096);
	child_sleeps();
}

/* Two children of ours: one still shares the memory that this process waits in. */
static void test_shared_memory(void **state)
{
	struct process process;
	struct snapshot *snap = start(getpid(), &process);
	pid_t with, without;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	with = child_start(child_sleeps);
	without = child_start(unmap_and_sleep);
	while (true) { /* until it has unmapped it */
		struct maps maps = {0};
		struct process other;
		const struct map_entry *map;

		assert_int_equal(process_open(without, NULL, &other), 0);
		assert_int_equal(process_maps(&other, snap->arena, NULL, &maps), 0);
		map = maps_find(&maps, (uintptr_t)shared);
		vec_deinit(&maps);
		process_close(&other);
		if (!map)
			break;
		sched_yield();
	}
	assert_int_equal(process_maps(&process, snap->arena, NULL, &snap->maps), 0);
	assert_true(lock_memory_add(snap, getpid(), (uintptr_t)shared, (uint32_t)without));
	assert_true(lock_memory_add(snap, getpid() + 1, (uintptr_t)shared + 64, (uint32_t)with));
	assert_non_null(find(snap, &process));
	assert_int_equal(snap->outsiders.len, 2);
	assert_int_equal(snap->outsiders.data[0].pid, without);
	assert_false(snap->outsiders.data[0].shares_memory);
	assert_int_equal(snap->outsiders.data[1].pid, with);
	assert_int_equal(snap->outsiders.data[1].shares_memory, !snap->has_doubtful_numbers);
	child_end(with);
	child_end(without);
	munmap(shared, 4096);
	finish(snap, &process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parent),
		cmocka_unit_test(test_first_process),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_own_thread),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_same_memory),
		cmocka_unit_test(test_shared_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
