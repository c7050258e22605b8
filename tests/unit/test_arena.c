/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

static int setup(void **state)
{
	*state = arena_create();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	arena_destroy(*state);
	return 0;
}

static void test_alloc(void **state)
{
	static const size_t sizes[] = {1, 7, 16, 100, 64 * 1024, 200 * 1024, 3, 40 * 1024, 40 * 1024, 0, 5};
	char *blocks[sizeof(sizes) / sizeof(sizes[0])];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		blocks[i] = arena_alloc(*state, sizes[i]);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
		for (size_t j = 0; j < sizes[i]; j++)
			assert_int_equal(blocks[i][j], 0);
		memset(blocks[i], (int)i + 1, sizes[i]);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t j = 0; j < sizes[i]; j++)
			assert_int_equal(blocks[i][j], (int)i + 1);
}

static void test_large_block_keeps_the_small_one_open(void **state)
{
	char *a = arena_alloc(*state, 16);
	char *large = arena_alloc(*state, 1024 * 1024);
	char *b = arena_alloc(*state, 16);

	assert_non_null(large);
	assert_ptr_equal(b, a + 16);
}

static void test_alloc_too_large(void **state)
{
	assert_null(arena_alloc(*state, SIZE_MAX));
}

static void test_intern(void **state)
{
	const char *a = arena_intern(*state, "malloc");

	assert_string_equal(a, "malloc");
	assert_ptr_equal(arena_intern(*state, "malloc"), a);
	assert_ptr_equal(arena_intern_n(*state, "malloc_usable_size", 6), a);
	assert_ptr_equal(arena_printf(*state, "%s%s", "mal", "loc"), a);
	assert_int_equal(strlen(arena_printf(*state, "%01000d", 7)), 1000);
	assert_ptr_not_equal(arena_intern(*state, "malloc_usable_size"), a);
	assert_ptr_not_equal(arena_intern(*state, "mal"), a);
	assert_string_equal(arena_intern(*state, ""), "");
	assert_string_equal(arena_intern_n(*state, "ab\0cd", 5), "ab");
	assert_null(arena_intern(*state, NULL));
	assert_null(arena_intern_n(*state, NULL, 3));
}

static void test_intern_many(void **state)
{
	enum { N = 5000 };
	const char *first[N];
	char text[32];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < N; i++) {
			const char *s;

			snprintf(text, sizeof(text), "symbol_%d", i);
			s = arena_intern(*state, text);
			if (!round)
				first[i] = s;
			assert_ptr_equal(s, first[i]);
			assert_string_equal(s, text);
		}
	}
}

/* A name in a file that is being changed: measured first, it is shorter, or has other bytes, when it is compared. */
static void *change(void *arg)
{
	volatile char *text = arg;

	for (unsigned i = 0; text[63] == 'x'; i++)
		text[i % 60] = i / 60 % 2 ? 'a' : '\0';
	return NULL;
}

static void test_intern_what_changes(void **state)
{
	char *text = malloc(64);
	pthread_t thread;

	memset(text, 'a', 63);
	text[62] = '\0';
	text[63] = 'x';
	assert_int_equal(pthread_create(&thread, NULL, change, text), 0);
	for (unsigned i = 0; i < 20000; i++) {
		const char *s = arena_intern(*state, text);

		assert_true(s && strlen(s) <= 62);
	}
	*(volatile char *)&text[63] = '\0';
	pthread_join(thread, NULL);
	free(text);
}

static void test_destroy_null(void **state)
{
	arena_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_alloc, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_block_keeps_the_small_one_open, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alloc_too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_intern, setup, teardown),
		cmocka_unit_test_setup_teardown(test_intern_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_intern_what_changes, setup, teardown),
		cmocka_unit_test(test_destroy_null),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
