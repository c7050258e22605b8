/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "target/thread_copies.h"

static struct mem_copy copy_of(uint64_t start, const char *text)
{
	return (struct mem_copy){.start = start, .len = strlen(text), .data = (uint8_t *)text};
}

static void add(struct snapshot *snap, pid_t tid, uint64_t start, const char *text)
{
	assert_true(vec_push(&snap->copies, (struct snap_copy){.tid = tid, .copy = copy_of(start, text)}));
}

static void expect(struct thread_copies *copies, const struct snapshot *snap, pid_t tid, uint64_t address, const char *want)
{
	const struct snap_thread thread = {.tid = tid, .stack = copy_of(0x100, "stack"), .interrupted = copy_of(0x200, "main")};
	struct thread_copies_mem mem;
	char text[64] = "";

	assert_true(thread_copies_mem_init(&mem, copies, snap, &thread));
	assert_int_equal(mem.mem.read(&mem.mem, address, text, sizeof(text) - 1), strlen(want));
	assert_string_equal(text, want);
}

static void test_threads(void **state)
{
	struct snapshot *snap = snapshot_create(1, arch_host());
	struct thread_copies copies = {0};

	expect(&copies, snap, 7, 0x1000, "");
	add(snap, 9, 0x1000, "nine");
	add(snap, 7, 0x1004, "and more");
	add(snap, 0, 0x1000, "everybody's");
	add(snap, 7, 0x1000, "seven");
	add(snap, 8, 0x1000, "");
	expect(&copies, snap, 7, 0x1000, "sevennd more"); /* across the end of one copy into the other */
	expect(&copies, snap, 9, 0x1001, "ine");
	expect(&copies, snap, 8, 0x1000, "");
	expect(&copies, snap, 10, 0x1000, "");
	expect(&copies, snap, 7, 0x102, "ack");
	expect(&copies, snap, 7, 0x200, "main");
	add(snap, 10, 0x1000, "late");
	expect(&copies, snap, 10, 0x1000, "late");
	thread_copies_deinit(&copies);
	snapshot_destroy(snap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
