/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <pthread.h>

#include "base/clock.h"
#include "offcpu/feed/requests.h"

static int start(void **state)
{
	*state = requests_create();
	return *state ? 0 : -1;
}

static int finish(void **state)
{
	requests_destroy(*state);
	return 0;
}

static void add(struct requests *requests, pid_t tgid, uint32_t what)
{
	assert_true(requests_add(requests, (struct request){.tgid = tgid, .what = what}));
}

static void assert_next(struct requests *requests, pid_t tgid, uint32_t what)
{
	struct request request;

	assert_true(requests_take(requests, &request));
	assert_int_equal(request.tgid, tgid);
	assert_int_equal(request.what, what);
}

/* In the order in which they came first. */
static void test_once(void **state)
{
	add(*state, 1, REQUEST_READ);
	add(*state, 2, REQUEST_READ);
	add(*state, 1, REQUEST_READ | REQUEST_ASKED);
	add(*state, 1, REQUEST_READ);
	assert_next(*state, 1, REQUEST_READ | REQUEST_ASKED);
	add(*state, 1, REQUEST_READ);
	assert_next(*state, 2, REQUEST_READ);
	assert_next(*state, 1, REQUEST_READ);
}

static void test_easiest_first(void **state)
{
	const uint64_t efforts[] = {30, 10, 0, 20, 10, 0};

	for (pid_t i = 0; i < 6; i++) {
		const struct request request = {.tgid = i + 1, .what = REQUEST_READ, .effort = efforts[i]};

		assert_true(requests_add(*state, request));
	}
	assert_next(*state, 3, REQUEST_READ);
	assert_next(*state, 6, REQUEST_READ);
	assert_next(*state, 2, REQUEST_READ);
	assert_next(*state, 5, REQUEST_READ);
	assert_next(*state, 4, REQUEST_READ);
	assert_next(*state, 1, REQUEST_READ);
}

/* What has ended is not read any more; but the next process with its number is. */
static void test_ended(void **state)
{
	add(*state, 1, REQUEST_READ | REQUEST_ASKED);
	add(*state, 1, REQUEST_FORGET);
	assert_next(*state, 1, REQUEST_FORGET | REQUEST_ASKED);
	add(*state, 1, REQUEST_READ);
	add(*state, 1, REQUEST_FORGET);
	add(*state, 1, REQUEST_READ);
	assert_next(*state, 1, REQUEST_FORGET | REQUEST_READ);
}

static void test_too_many(void **state)
{
	for (int round = 0; round < 2; round++) { /* from another place of the ring on */
		for (pid_t i = 1; i <= REQUESTS_MAX; i++)
			add(*state, i, REQUEST_READ);
		assert_false(requests_add(*state, (struct request){.tgid = REQUESTS_MAX + 1, .what = REQUEST_READ}));
		add(*state, 7, REQUEST_ASKED);
		for (pid_t i = 1; i <= REQUESTS_MAX; i++)
			assert_next(*state, i, i == 7 ? REQUEST_READ | REQUEST_ASKED : REQUEST_READ);
		add(*state, 1, REQUEST_READ);
		assert_next(*state, 1, REQUEST_READ);
	}
}

/* What waits can be had by another; what is worked on cannot. */
static void test_claim(void **state)
{
	struct request request = {.tgid = 1, .what = REQUEST_READ};

	assert_true(requests_claim(*state, &request));
	assert_int_equal(request.what, REQUEST_READ);
	add(*state, 2, REQUEST_READ);
	add(*state, 1, REQUEST_READ | REQUEST_ASKED);
	add(*state, 3, REQUEST_READ);
	assert_true(requests_claim(*state, &request));
	assert_int_equal(request.what, REQUEST_READ | REQUEST_ASKED);
	assert_next(*state, 2, REQUEST_READ);
	assert_next(*state, 3, REQUEST_READ);
	request = (struct request){.tgid = 3, .what = REQUEST_FORGET};
	assert_false(requests_claim(*state, &request));
	assert_int_equal(request.what, REQUEST_FORGET);
	add(*state, 1, REQUEST_READ);
	assert_next(*state, 1, REQUEST_READ);
	assert_true(requests_claim(*state, &request)); /* it is done */
}

static void test_end(void **state)
{
	struct request request;

	add(*state, 1, REQUEST_READ);
	requests_end(*state);
	assert_false(requests_take(*state, &request));
	requests_destroy(NULL);
}

static void *works(void *arg)
{
	struct request request;

	while (requests_take(arg, &request))
		;
	return NULL;
}

/* Until all is done, which what was taken last is only when the next is asked for. */
static void test_wait(void **state)
{
	pthread_t thread;

	assert_true(requests_wait(*state, 0));
	add(*state, 1, REQUEST_READ);
	assert_false(requests_wait(*state, 0));
	assert_false(requests_wait(*state, monotonic_ns() + 1000000));
	assert_next(*state, 1, REQUEST_READ);
	assert_false(requests_wait(*state, monotonic_ns()));
	assert_int_equal(pthread_create(&thread, NULL, works, *state), 0);
	assert_true(requests_wait(*state, UINT64_MAX / 2));
	add(*state, 2, REQUEST_READ);
	assert_true(requests_wait(*state, UINT64_MAX / 2));
	requests_end(*state);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_once, start, finish),
		cmocka_unit_test_setup_teardown(test_easiest_first, start, finish),
		cmocka_unit_test_setup_teardown(test_ended, start, finish),
		cmocka_unit_test_setup_teardown(test_too_many, start, finish),
		cmocka_unit_test_setup_teardown(test_claim, start, finish),
		cmocka_unit_test_setup_teardown(test_wait, start, finish),
		cmocka_unit_test_setup_teardown(test_end, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
