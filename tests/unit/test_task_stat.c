/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <errno.h>

#include "proc/task_stat.h"

static struct task_stat read_text(const char *text, int want)
{
	struct task_stat stat = {0};
	struct scratch s;
	int fd;

	scratch_init(&s);
	scratch_text(&s, "stat", text);
	fd = open(s.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(task_stat_read(fd, "stat", &stat), want);
	close(fd);
	scratch_deinit(&s);
	return stat;
}

static void test_fields(void **state)
{
	struct task_stat stat = read_text("12 (a) R 1 (b) S 77 12 12 0 -1 2097168 0 0 0 0 0 0 0 0 20 0 1 0 12345 9 9 "
					  "18446744073709551615 1 1 140732227 0 0 0 0 0 0 0 0 0 17 3 0\n",
					  0);

	assert_string_equal(stat.name, "a) R 1 (b");
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.parent, 77);
	assert_true(stat.flags & TASK_FLAG_KERNEL_THREAD);
	assert_true(stat.flags & TASK_FLAG_IO_WORKER);
	assert_int_equal(stat.start_time, 12345);
	assert_int_equal(stat.start_stack, 140732227);
	assert_int_equal(stat.exit_signal, 17);
	assert_int_equal(stat.cpu, 3);
}

static void test_long_name(void **state)
{
	struct task_stat stat = read_text("12 (kworker/u8:0-events_unbound) I 2 0 0 0 -1 1 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n", 0);

	assert_string_equal(stat.name, "kworker/u8:0-eve");
	assert_int_equal(stat.state, 'I');
	assert_int_equal(stat.start_time, 5);
	assert_int_equal(stat.start_stack, 0);
	assert_int_equal(stat.cpu, -1);
}

static void test_damaged(void **state)
{
	read_text("", -EINVAL);
	read_text("12 (a", -EINVAL);
	read_text("12 )a(", -EINVAL);
	read_text("12 (a) S 1 2 3\n", -EINVAL);
}

static void test_self(void **state)
{
	struct task_stat stat;

	assert_int_equal(task_stat_read(AT_FDCWD, "/proc/self/stat", &stat), 0);
	assert_int_equal(stat.state, 'R');
	assert_int_equal(stat.parent, getppid());
	assert_int_equal(stat.group, getpgrp());
	assert_true(stat.start_stack != 0);
	assert_int_equal(task_stat_read(AT_FDCWD, "/proc/self/no-such-file", &stat), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_self),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
