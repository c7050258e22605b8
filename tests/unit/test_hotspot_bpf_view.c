/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "hotspot_fake.h"
#include "runtime/hotspot/bpf_view.h"

enum { INTERPRETER = FAKE_HEAP + 0x1000, INTERPRETER_SIZE = 0x800 };

static struct fake fake;

static int set_up(void **state)
{
	fake_init(&fake);
	fake.layout.facts[HS_INTERPRETER] = INTERPRETER;
	fake.layout.facts[HS_INTERPRETER_SIZE] = INTERPRETER_SIZE;
	return 0;
}

static int tear_down(void **state)
{
	fake_deinit(&fake);
	return 0;
}

/* All heaps are in one range, and so much of a blob is read as its last field needs. */
static void test_view(void **state)
{
	uint64_t *heap = &fake.layout.facts[HS_HEAPS + 5];
	struct offcpu_hotspot found;

	fake.layout.facts[HS_NHEAPS] = 2;
	heap[0] = FAKE_HEAP - 0x2000;
	heap[1] = FAKE_HEAP - 0x1000;
	heap[2] = FAKE_SEGMAP + 0x80;
	heap[4] = 6;
	assert_true(bpf_view_of(&fake.layout, &arch_x86_64, &found));
	assert_int_equal(found.low, FAKE_HEAP - 0x2000);
	assert_int_equal(found.high, FAKE_HEAP_END);
	assert_int_equal(found.nheaps, 2);
	assert_int_equal(found.heaps[1].map, FAKE_SEGMAP + 0x80);
	assert_int_equal(found.heaps[1].log2_segment, 6);
	assert_int_equal(found.interpreter_end, INTERPRETER + INTERPRETER_SIZE);
	assert_int_equal(found.head, FAKE_NM_DEOPT + 8);
	assert_int_equal(found.frame_size.offset, FAKE_BLOB_FRAME_SIZE);
	assert_int_equal(found.frame_size.size, 4);
	assert_true(found.frame_size.is_signed);
	assert_int_equal(found.orig_pc_offset.offset, FAKE_NM_ORIG_PC);
	assert_int_equal(found.code_offset.size, 0); /* this one has pointers instead */
}

/* Where it is not known how a method is left that was given up, what it keeps for that is of no use. */
static void test_without_handler(void **state)
{
	struct offcpu_hotspot found;

	fake.layout.facts[HS_NM_DEOPT_HANDLER] = HS_ABSENT;
	assert_true(bpf_view_of(&fake.layout, &arch_aarch64, &found));
	assert_int_equal(found.orig_pc_offset.size, 0);
	assert_int_equal(found.head, FAKE_BLOB_FRAME_COMPLETE + 4);
}

static void test_not_enough(void **state)
{
	struct offcpu_hotspot found = {.id = 7};

	fake_field(&fake, HS_NM_COMPILE_ID, OFFCPU_HOTSPOT_HEAD, 4, true); /* too far away */
	assert_false(bpf_view_of(&fake.layout, &arch_x86_64, &found));
	fake.layout.facts[HS_NM_COMPILE_ID] = HS_ABSENT;
	fake.layout.facts[HS_INTERPRETER] = HS_ABSENT;
	assert_false(bpf_view_of(&fake.layout, &arch_x86_64, &found));
	assert_int_equal(found.id, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_view, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_without_handler, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_enough, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
