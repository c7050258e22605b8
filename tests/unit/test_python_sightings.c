/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "runtime/python/sightings.h"

static struct python_sightings sightings;

static void add(uint64_t code, uint32_t version)
{
	python_sightings_add(&sightings, &(struct python_sighting){.code = code, .version = version});
}

/* What was seen first counts: later it may be another one. */
static void test_first_counts(void **state)
{
	python_sightings_init(&sightings);
	assert_null(python_sightings_find(&sightings, 0x1000));
	add(0x1000, 7);
	add(0x1000, 8);
	add(0x2000, 9);
	assert_int_equal(python_sightings_find(&sightings, 0x1000)->version, 7);
	assert_int_equal(python_sightings_find(&sightings, 0x2000)->version, 9);
	assert_null(python_sightings_find(&sightings, 0x3000));
	assert_int_equal(sightings.len, 2);
}

static void test_full(void **state)
{
	python_sightings_init(&sightings);
	for (uint32_t i = 0; i < PYTHON_MAX_SIGHTINGS + 10; i++)
		add(0x1000 + (uint64_t)i * 16, i + 1);
	assert_int_equal(sightings.len, PYTHON_MAX_SIGHTINGS);
	for (uint32_t i = 0; i < PYTHON_MAX_SIGHTINGS; i++)
		assert_int_equal(python_sightings_find(&sightings, 0x1000 + (uint64_t)i * 16)->version, i + 1);
	assert_null(python_sightings_find(&sightings, 0x1000 + (uint64_t)PYTHON_MAX_SIGHTINGS * 16));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_counts),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
