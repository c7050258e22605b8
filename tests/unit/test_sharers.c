/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <sys/mman.h>
#include <unistd.h>

#include "child.h"
#include "lock_memory.h"
#include "target/sharers.h"

enum { PAGE = 65536 }; /* of any machine */

static void *map_shared(void)
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

static struct snapshot *start(struct process *process)
{
	struct snapshot *snap = snapshot_create(getpid(), arch_host());

	assert_non_null(snap);
	assert_int_equal(process_open(getpid(), NULL, process), 0);
	assert_int_equal(process_maps(process, snap->arena, NULL, &snap->maps), 0);
	return snap;
}

static void finish(struct snapshot *snap, struct process *process)
{
	process_close(process);
	snapshot_destroy(snap);
}

static void test_who_shares(void **state)
{
	const pid_t before = child_start(child_sleeps);
	void *memory = map_shared();
	const pid_t after = child_start(child_sleeps);
	struct sharers sharers;
	struct process process;
	struct snapshot *snap = start(&process);

	assert_true(lock_memory_add(snap, getpid(), (uintptr_t)memory, 17));
	assert_true(lock_memory_add(snap, getpid() + 1, (uintptr_t)memory + WAIT_BYTES, 17));
	sharers_find(&process, snap, &sharers);
	assert_int_equal(sharers.n, 1);
	assert_true(snap->pid_ns && snap->ipc_ns);
	assert_true(sharers_have(&sharers, getpid()));
	assert_true(sharers_have(&sharers, after));
	assert_false(sharers_have(&sharers, before));
	child_end(before);
	child_end(after);
	assert_false(sharers_have(&sharers, after));
	munmap(memory, PAGE);
	finish(snap, &process);
}

static void test_private_memory(void **state)
{
	static uint32_t words[WAIT_WORDS];
	struct sharers sharers;
	struct process process;
	struct snapshot *snap = start(&process);

	assert_true(lock_memory_add(snap, getpid(), (uintptr_t)words, 17));
	sharers_find(&process, snap, &sharers);
	assert_int_equal(sharers.n, 0);
	assert_false(snap->has_doubtful_numbers || snap->pid_ns);
	assert_false(sharers_have(&sharers, getpid()));
	finish(snap, &process);
}

/* More than are compared: any of the rest may be shared by somebody who is numbered otherwise. */
static void test_many_objects(void **state)
{
	void *memory[MAX_SHARED_OBJECTS + 1];
	struct sharers sharers;
	struct process process;
	struct snapshot *snap;

	for (size_t i = 0; i <= MAX_SHARED_OBJECTS; i++)
		memory[i] = map_shared();
	snap = start(&process);
	for (size_t i = 0; i <= MAX_SHARED_OBJECTS; i++)
		assert_true(lock_memory_add(snap, getpid() + (pid_t)i, (uintptr_t)memory[i], 17));
	sharers_find(&process, snap, &sharers);
	assert_int_equal(sharers.n, MAX_SHARED_OBJECTS);
	assert_true(sharers.too_many && snap->has_doubtful_numbers);
	for (size_t i = 0; i <= MAX_SHARED_OBJECTS; i++)
		munmap(memory[i], PAGE);
	finish(snap, &process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_shares),
		cmocka_unit_test(test_private_memory),
		cmocka_unit_test(test_many_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
