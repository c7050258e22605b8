/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <linux/futex.h>

#include "model/lock_words.h"

enum { OWNER = 4711 };

static unsigned numbers_of(uint32_t op, uint32_t value, unsigned place, uint32_t word, uint32_t *first)
{
	uint32_t words[WAIT_WORDS] = {0}, out[MAX_OWNER_NUMBERS] = {0};
	unsigned n;

	words[place] = word;
	n = lock_owner_numbers(op, value, words, out);
	*first = out[0];
	return n;
}

static void expect_owner(uint32_t op, uint32_t value, unsigned place, uint32_t word)
{
	uint32_t found;

	assert_int_equal(numbers_of(op, value, place, word, &found), 1);
	assert_int_equal(found, OWNER);
	assert_int_equal(numbers_of(op, value, place + 1, word, &found), 0);
	assert_int_equal(numbers_of(op, value, place, 0, &found), 0);
}

static void test_places(void **state)
{
	const uint32_t wait = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;

	expect_owner(FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2, 2, OWNER);		     /* a mutex */
	expect_owner(wait, 2, 2, OWNER);					     /* with a time limit */
	expect_owner(FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0, OWNER);		     /* one that inherits priorities, */
	expect_owner(FUTEX_LOCK_PI2, 0, 0, OWNER | FUTEX_WAITERS);		     /* with somebody who waits */
	expect_owner(FUTEX_WAIT, 815 | FUTEX_WAITERS, 0, OWNER | FUTEX_WAITERS);     /* a robust one; or of musl's */
	expect_owner(FUTEX_WAIT, 815 | FUTEX_WAITERS, 0, OWNER | FUTEX_OWNER_DIED);
	expect_owner(wait, OWNER | 0x40000000, 0, OWNER | 0x40000000);		     /* a stream of musl's */
}

/* What has no owner, or has not told it. */
static void test_nobody(void **state)
{
	uint32_t found;

	assert_int_equal(numbers_of(FUTEX_WAIT, 2, 2, 0, &found), 0);
	assert_int_equal(numbers_of(FUTEX_WAIT, 2, 2, 0x3fffffff, &found), 0); /* inconsistent */
	assert_int_equal(numbers_of(FUTEX_WAIT, 2, 2, 0x80000001, &found), 0);
	assert_int_equal(numbers_of(FUTEX_WAIT, 1, 2, OWNER, &found), 0);
	assert_int_equal(numbers_of(FUTEX_WAIT, 2, 2, 1, &found), 1); /* which is the first process of a container */
}

/* Of a lock for readers and writers it is not known at which of its two futexes a thread waits. */
static void test_two_places(void **state)
{
	const uint32_t words[WAIT_WORDS] = {[3] = 11, [4] = 12};
	uint32_t out[MAX_OWNER_NUMBERS];

	assert_int_equal(lock_owner_numbers(FUTEX_WAIT, 3, words, out), 2);
	assert_true(out[0] == 12 && out[1] == 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_two_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
