/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "base/chains.h"
#include "base/cleanup.h"

static void test_none(void **state)
{
	_cleanup_(chains_deinit) struct chains chains = {0};

	assert_int_equal(chains_first(&chains, 0), 0);
	assert_true(chains_add(&chains, 7));
	assert_int_equal(chains_first(&chains, 0), 0);
	assert_int_equal(chains_first(&chains, 7), 1);
	assert_int_equal(chains_next(&chains, 1), 0);
}

/* Each entry is in the chain of its hash and in no other. */
static void test_many(void **state)
{
	enum { ENTRIES = 1000, HASHES = 7 };
	_cleanup_(chains_deinit) struct chains chains = {0};
	size_t found = 0;

	for (size_t i = 0; i < ENTRIES; i++)
		assert_true(chains_add(&chains, i % HASHES));
	for (uint64_t hash = 0; hash < HASHES; hash++) {
		size_t before = ENTRIES + 1;

		for (size_t i = chains_first(&chains, hash); i; i = chains_next(&chains, i)) {
			assert_int_equal((i - 1) % HASHES, hash);
			assert_true(i < before); /* the last one first, each once */
			before = i;
			found++;
		}
	}
	assert_int_equal(found, ENTRIES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests_name("chains", tests, NULL, NULL);
}
