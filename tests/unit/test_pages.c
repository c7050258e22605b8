/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <string.h>

#include "runtime/pages.h"

enum { AT = 0x40000 };

static void answer(struct pages *pages, struct ask *wants, const uint8_t *bytes, uint64_t readable)
{
	for (size_t i = 0; i < wants->len; i++) {
		struct ask_range *range = &wants->data[i];

		range->data = (uint8_t *)bytes + (range->address - AT);
		range->got = range->address >= AT + readable ? 0 : range->len;
	}
	assert_true(pages_take(pages, wants));
	wants->len = 0;
}

/* What a reader lacks is asked for, once, in pieces that end with the target's pages. */
static void test_reader_starts_again(void **state)
{
	static uint8_t bytes[0x4000];
	struct pages pages;
	struct ask wants = {0};
	uint64_t word;

	bytes[PAGES_SIZE - 4] = 0x11;
	bytes[PAGES_SIZE + 3] = 0x22;
	pages_init(&pages, sizeof(bytes));
	assert_false(pages_read_word(&pages, AT + PAGES_SIZE - 4, &word));
	assert_true(pages.lacks);
	assert_true(pages_want(&pages, &wants));
	assert_int_equal(wants.len, 1);
	assert_int_equal(wants.data[0].address, AT);
	assert_int_equal(wants.data[0].len, 2 * PAGES_SIZE);
	answer(&pages, &wants, bytes, sizeof(bytes));
	pages.lacks = false;
	assert_true(pages_read_word(&pages, AT + PAGES_SIZE - 4, &word));
	assert_int_equal(word, UINT64_C(0x2200000000000011));
	assert_false(pages.lacks);
	assert_true(pages_want(&pages, &wants));
	assert_int_equal(wants.len, 0);

	pages_foresee(&pages, AT + 0xe00, 0x400); /* across the end of a page */
	assert_true(pages_want(&pages, &wants));
	assert_int_equal(wants.len, 2);
	ask_deinit(&wants);
	pages_deinit(&pages);
}

/* Two readers of one piece both lack it; the second must not be told that nothing is missing. */
static void test_wanted_by_two(void **state)
{
	struct pages pages;
	uint64_t word;

	pages_init(&pages, 1 << 20);
	assert_false(pages_read_word(&pages, AT, &word));
	pages.lacks = false;
	assert_false(pages_read_word(&pages, AT + 8, &word));
	assert_true(pages.lacks);
	assert_int_equal(pages.wanted.len, 1);
	pages_deinit(&pages);
}

/* What cannot be read is not asked for again, and nobody waits for it. */
static void test_in_vain(void **state)
{
	static uint8_t bytes[0x2000];
	struct pages pages;
	struct ask wants = {0};
	uint64_t word;

	pages_init(&pages, 1 << 20);
	assert_false(pages_read_word(&pages, AT, &word));
	assert_true(pages_want(&pages, &wants));
	answer(&pages, &wants, bytes, 0);
	pages.lacks = false;
	assert_false(pages_read_word(&pages, AT, &word));
	assert_false(pages.lacks);
	assert_true(pages_want(&pages, &wants));
	assert_int_equal(wants.len, 0);
	ask_deinit(&wants);
	pages_deinit(&pages);
}

/* Lengths and addresses of a hostile process. */
static void test_bounds(void **state)
{
	struct pages pages;
	uint64_t word;

	pages_init(&pages, 4 * PAGES_SIZE);
	pages_foresee(&pages, AT, UINT64_MAX);
	assert_int_equal(pages.wanted.len, 0); /* no such range */
	pages_foresee(&pages, AT, UINT64_C(1) << 40);
	assert_int_equal(pages.wanted.len, 4);
	pages.lacks = false;
	assert_false(pages_read_word(&pages, AT + 5 * PAGES_SIZE, &word));
	assert_false(pages.lacks); /* it will never come */
	assert_false(pages_read_word(&pages, UINT64_MAX - 3, &word));
	pages_deinit(&pages);

	pages_init(&pages, 4 * PAGES_SIZE);
	pages.effort = 100;
	assert_false(pages_read_word(&pages, AT, &word));
	assert_true(pages.lacks);
	pages.lacks = false;
	assert_false(pages_read_word(&pages, AT, &word)); /* it was looked for long enough */
	assert_false(pages.lacks);
	pages_deinit(&pages);
}

static void test_saved(void **state)
{
	static uint8_t bytes[4 * PAGES_SIZE];
	struct snapshot *snap = snapshot_create(1, &arch_aarch64);
	struct snap_copy copy = {.copy = {.start = AT + 8, .len = sizeof(bytes) - 8, .data = bytes + 8}};
	struct pages pages;
	uint64_t word;

	bytes[PAGES_SIZE] = 7;
	assert_true(vec_push(&snap->copies, copy));
	copy.tid = 5; /* a thread's own: it may have been written since */
	copy.copy.start += 0x10000;
	assert_true(vec_push(&snap->copies, copy));
	pages_init(&pages, 1 << 20);
	assert_true(pages_load(&pages, snap, 0));
	assert_true(pages_read_word(&pages, AT + PAGES_SIZE, &word));
	assert_int_equal(word, 7);
	assert_false(pages_read_word(&pages, AT + 8, &word)); /* only a part of that piece is there */
	assert_false(pages_read_word(&pages, AT + 0x10000 + PAGES_SIZE, &word));
	assert_false(pages.lacks); /* nobody waits for it */
	assert_int_equal(pages.wanted.len, 0);
	pages_deinit(&pages);

	pages_init(&pages, 1 << 20);
	assert_true(pages_load(&pages, snap, 5));
	assert_true(pages_read_word(&pages, AT + 0x10000 + PAGES_SIZE, &word));
	assert_int_equal(word, 7);
	assert_false(pages_read_word(&pages, AT + PAGES_SIZE, &word));
	assert_false(pages.lacks);
	pages_deinit(&pages);
	snapshot_destroy(snap);
}

struct fake_process {
	struct mem mem;
	uint64_t value;
	int reads;
};

static ssize_t read_fake(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct fake_process *process = (struct fake_process *)mem;

	if (address >= AT + 0x10000)
		return -EFAULT;
	process->reads++;
	memset(buf, 0, len);
	memcpy(buf, &process->value, sizeof(process->value));
	return (ssize_t)len;
}

static void test_live(void **state)
{
	struct fake_process process = {.mem.read = read_fake, .value = 7};
	struct pages pages;
	uint64_t word;

	pages_init(&pages, 1 << 20);
	pages_read_live(&pages, &process.mem, 2 * PAGES_SIZE);
	assert_true(pages_read_word(&pages, AT, &word));
	assert_int_equal(word, 7);
	process.value = 8;
	assert_true(pages_read_word(&pages, AT, &word)); /* all readers see the same */
	assert_int_equal(word, 7);
	assert_int_equal(process.reads, 1);
	assert_false(pages_read_word(&pages, AT + 0x10000, &word));
	assert_false(pages.lacks); /* it will not come */
	assert_false(pages_read_word(&pages, AT + 2 * PAGES_SIZE, &word)); /* over the limit */
	pages_read_live(&pages, &process.mem, 2 * PAGES_SIZE);
	assert_true(pages_read_word(&pages, AT, &word));
	assert_int_equal(word, 8);
	pages_deinit(&pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader_starts_again),
		cmocka_unit_test(test_wanted_by_two),
		cmocka_unit_test(test_in_vain),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_saved),
		cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
