/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "base/clock.h"
#include "wait/time_left.h"

enum { LIMIT = 0x1000, ARGUMENTS = 6 };

static const int64_t second = NS_PER_S;

/* Its memory has one time. */
struct one_time {
	struct mem mem;
	int64_t words[2];
};

static ssize_t read_time(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	const struct one_time *time = (const struct one_time *)mem;

	if (address != LIMIT || len != sizeof(time->words))
		return -1;
	memcpy(buf, time->words, len);
	return (ssize_t)len;
}

/* A thread that has been for two seconds in the call of this name. */
static struct time_limit limit_of(const char *name, const uint64_t *args)
{
	struct one_time time = {.mem = {.read = read_time}, .words = {5, 500000}};
	struct snapshot snap = {.arch = &arch_x86_64, .taken_at_monotonic_ns = 3 * second, .taken_at_ns = 4 * second};
	struct snap_thread thread = {.state = 'S', .syscall = {.state = SYSCALL_IN, .nr = -1}, .off_cpu_ns = 2 * second, .facts = thread_facts_none};
	const struct trace_thread t = {.snap = &snap, .thread = &thread};

	for (unsigned i = 0; i < snap.arch->nsyscalls; i++)
		if (snap.arch->syscalls[i].name && strcmp(snap.arch->syscalls[i].name, name) == 0)
			thread.syscall.nr = (int)i;
	assert_true(thread.syscall.nr >= 0);
	memcpy(thread.syscall.args, args, ARGUMENTS * sizeof(*args));
	return time_limit_of(&t, &time.mem);
}

static struct time_limit with_argument(const char *name, unsigned arg, uint64_t value)
{
	uint64_t args[ARGUMENTS] = {0};

	args[arg] = value;
	return limit_of(name, args);
}

static bool is_limited(const char *name, unsigned arg, uint64_t value)
{
	return with_argument(name, arg, value).limited;
}

static void test_whether_there_is_one(void **state)
{
	assert_true(is_limited("poll", 2, 100) && is_limited("poll", 2, 0));
	assert_false(is_limited("poll", 2, 0xffffffff) || is_limited("poll", 2, UINT64_MAX));
	assert_true(is_limited("epoll_wait", 3, 1));
	assert_false(is_limited("epoll_wait", 3, (uint32_t)-1));
	assert_true(is_limited("ppoll", 2, LIMIT) && is_limited("select", 4, LIMIT) && is_limited("epoll_pwait2", 3, LIMIT));
	assert_false(is_limited("ppoll", 2, 0) || is_limited("select", 4, 0) || is_limited("read", 0, 5));
	assert_true(is_limited("ppoll", 2, LIMIT + 1)); /* also where it cannot be read */
}

/* The kernel looks at it only when a datagram has come. */
static void test_limit_of_recvmmsg_is_none(void **state)
{
	assert_false(is_limited("recvmmsg", 4, LIMIT));
}

static void test_how_long_it_is(void **state)
{
	const struct time_limit poll = with_argument("poll", 2, 2500), over = with_argument("poll", 2, 100), sleep = with_argument("nanosleep", 0, LIMIT),
				select = with_argument("select", 4, LIMIT);

	assert_true(poll.left == LEFT_AT_MOST && poll.left_ns == second / 2);
	assert_true(over.left == LEFT_AT_MOST && over.left_ns == 0);
	assert_true(sleep.left == LEFT_ABOUT && sleep.left_ns == 3 * second + 500000);
	assert_true(select.left == LEFT_AT_MOST && select.left_ns == 3 * second + second / 2); /* microseconds */
}

/* A point in time: of the clock that it is of. */
static void test_until_when_it_is(void **state)
{
	const uint64_t absolute[ARGUMENTS] = {1, 1, LIMIT}, of_day[ARGUMENTS] = {0, 1, LIMIT}, of_cpu[ARGUMENTS] = {3, 1, LIMIT};
	const struct time_limit monotonic = limit_of("clock_nanosleep", absolute), realtime = limit_of("clock_nanosleep", of_day),
				cpu = limit_of("clock_nanosleep", of_cpu);

	assert_true(monotonic.left == LEFT_EXACT && monotonic.left_ns == 2 * second + 500000);
	assert_true(realtime.left == LEFT_EXACT && realtime.left_ns == second + 500000);
	assert_true(cpu.limited && cpu.left == LEFT_UNKNOWN);
}

/* The clocks of another time namespace. */
static void test_other_clocks(void **state)
{
	struct snapshot snap = {.taken_at_ns = 9, .taken_at_monotonic_ns = 3 * second, .monotonic_ahead_ns = -second, .boottime_ahead_ns = second};

	assert_true(snapshot_clock(&snap, CLOCK_MONOTONIC) == 2 * second);
	assert_true(snapshot_clock(&snap, CLOCK_BOOTTIME) == 4 * second && snapshot_clock(&snap, CLOCK_BOOTTIME_ALARM) == 4 * second);
	assert_true(snapshot_clock(&snap, CLOCK_REALTIME) == 9 && snapshot_clock(&snap, CLOCK_PROCESS_CPUTIME_ID) == 0);
	snap.monotonic_ahead_ns = CLOCK_UNKNOWN;
	snap.boottime_ahead_ns = INT64_MAX; /* a damaged file */
	assert_true(snapshot_clock(&snap, CLOCK_MONOTONIC) == 0 && snapshot_clock(&snap, CLOCK_BOOTTIME) == 0);
	snap = (struct snapshot){.monotonic_ahead_ns = second}; /* an older one */
	assert_true(snapshot_clock(&snap, CLOCK_MONOTONIC) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whether_there_is_one),
		cmocka_unit_test(test_limit_of_recvmmsg_is_none),
		cmocka_unit_test(test_how_long_it_is),
		cmocka_unit_test(test_until_when_it_is),
		cmocka_unit_test(test_other_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
