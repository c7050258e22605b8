/* SPDX-License-Identifier: MIT */
/* The process that is read is this one. */
#include "child.h"

#include <string.h>
#include <sys/mman.h>

#include "target/recorder.h"
#include "target/target.h"

enum { PAGE = 65536 }; /* a multiple of any */

struct fixture {
	struct target *target;
	uint8_t *memory; /* a page, and one that cannot be read */
};

static int open_self(void **state)
{
	static struct fixture f;

	f.memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (f.memory == MAP_FAILED || mprotect(f.memory + PAGE, PAGE, PROT_NONE) || target_open(getpid(), NULL, &f.target) ||
	    target_read_map(f.target, NULL))
		return -1;
	for (unsigned i = 0; i < PAGE; i++)
		f.memory[i] = (uint8_t)(i * 7 + i / 256);
	*state = &f;
	return 0;
}

static int close_self(void **state)
{
	struct fixture *f = *state;

	munmap(f->memory, 2 * PAGE);
	target_close(f->target);
	return 0;
}

static void expect(struct mem *mem, const uint8_t *at, const uint8_t *like, size_t len)
{
	uint8_t bytes[8192];

	assert_true(len <= sizeof(bytes));
	assert_true(mem_read_exact(mem, (uintptr_t)at, bytes, len));
	assert_memory_equal(bytes, like, len);
}

/* What was read of a process is read again from the copies, as it was, also without the process. */
static void test_process(void **state)
{
	struct fixture *f = *state;
	struct snapshot *snap = f->target->snap;
	struct process_recorder recorder;
	uint8_t before[PAGE], byte;
	size_t copies;

	memcpy(before, f->memory, PAGE);
	assert_true(process_recorder_init(&recorder, &f->target->memory, snap));
	expect(&recorder.mem, f->memory + 1000, before + 1000, 3000);
	expect(&recorder.mem, f->memory, before, 8);
	expect(&recorder.mem, f->memory + PAGE - 100, before + PAGE - 100, 100);
	assert_false(mem_read_exact(&recorder.mem, (uintptr_t)f->memory + PAGE - 4, &before[0], 8));
	assert_true(recorder.mem.read(&recorder.mem, (uintptr_t)f->memory + PAGE, &byte, 1) < 0);
	assert_true(recorder.mem.read(&recorder.mem, UINT64_MAX - 3, &byte, 8) < 0);
	before[0] = f->memory[0];
	copies = snap->copies.len;
	memset(f->memory, 0, PAGE);
	expect(&recorder.mem, f->memory + 1000, before + 1000, 3000);
	assert_int_equal(snap->copies.len, copies);
	process_recorder_deinit(&recorder);

	assert_true(process_recorder_init(&recorder, NULL, snap));
	expect(&recorder.mem, f->memory + 1500, before + 1500, 2000);
	assert_true(recorder.mem.read(&recorder.mem, (uintptr_t)f->memory + 10000, &byte, 1) < 0);
	process_recorder_deinit(&recorder);
}

static void test_passing(void **state)
{
	struct fixture *f = *state;
	struct process_recorder recorder;

	assert_true(process_recorder_init(&recorder, &f->target->memory, f->target->snap));
	recorder.passing = true;
	expect(&recorder.mem, f->memory, f->memory, 5000);
	assert_int_equal(f->target->snap->copies.len, 0);
	/* When it has read enough it reads nothing more. */
	recorder.left = 100;
	assert_true(recorder.mem.read(&recorder.mem, (uintptr_t)f->memory + 20000, (uint8_t[200]){0}, 200) < 0);
	process_recorder_deinit(&recorder);
}

/* Of a thread the stack is known already; the room is for two blocks. */
static void test_thread(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[2 * RECORDER_THREAD_BLOCK], stack_bytes[100], byte;
	struct snap_copy copies[2];
	struct mem_copy stack = {.start = (uintptr_t)f->memory, .len = sizeof(stack_bytes), .data = stack_bytes};
	struct recorder_room room = {.bytes = {.data = bytes, .size = sizeof(bytes)}, .copies = copies, .cap = 2};
	struct thread_recorder recorder;

	memset(stack_bytes, 0x55, sizeof(stack_bytes));
	thread_recorder_init(&recorder, &f->target->memory, &room, 17, &stack, NULL);
	expect(&recorder.mem, f->memory + 10, stack_bytes, 50);
	assert_int_equal(room.len, 0);
	expect(&recorder.mem, f->memory + 3000, f->memory + 3000, 1000); /* on both sides of a boundary: read at once */
	assert_int_equal(room.len, 1);
	assert_int_equal(room.copies[0].tid, 17);
	assert_int_equal(room.copies[0].copy.len, 2 * RECORDER_THREAD_BLOCK);
	expect(&recorder.mem, f->memory + 2500, f->memory + 2500, 500);
	assert_int_equal(room.len, 1);
	assert_true(recorder.mem.read(&recorder.mem, (uintptr_t)f->memory + 9000, &byte, 1) < 0);
	assert_int_equal(room.len, 1);
	/* Another thread's copies are not this one's. */
	room.cap = 2;
	thread_recorder_init(&recorder, &f->target->memory, &room, 18, NULL, NULL);
	assert_true(recorder.mem.read(&recorder.mem, (uintptr_t)f->memory + 3000, &byte, 1) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_process, open_self, close_self),
		cmocka_unit_test_setup_teardown(test_passing, open_self, close_self),
		cmocka_unit_test_setup_teardown(test_thread, open_self, close_self),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
