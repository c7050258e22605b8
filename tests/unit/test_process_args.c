/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/process_args.h"
#include "proc/task_stat.h"

static void expect_wrong(const char *text, const char *words)
{
	_cleanup_(process_args_deinit) struct process_args args = {0};
	struct err err = {0};

	assert_int_equal(process_args_add(&args, text, &err), -EINVAL);
	if (!strstr(err.msg, words))
		fail_msg("no %s in %s", words, err.msg);
}

static void test_numbers_and_names(void **state)
{
	_cleanup_(process_args_deinit) struct process_args args = {0};

	assert_int_equal(process_args_add(&args, "12", NULL), 0);
	assert_false(process_args_have_names(&args));
	assert_int_equal(process_args_add(&args, "nginx,13,12", NULL), 0);
	assert_int_equal(process_args_add(&args, "nginx", NULL), 0);
	assert_true(process_args_have_names(&args));
	assert_int_equal(args.len, 3);
	assert_int_equal(args.data[0].pid, 12);
	assert_string_equal(args.data[1].name, "nginx");
	assert_int_equal(args.data[2].pid, 13);
	expect_wrong("", "''");
	expect_wrong("1,", "''");
	expect_wrong("-x", "'-x'");
	expect_wrong("0", "'0'");
	expect_wrong("99999999999", "'99999999999'");
}

static void test_thread_numbers(void **state)
{
	struct tid_list tids = {0};
	struct err err = {0};

	assert_int_equal(process_args_add_numbers(&tids, "1,2", NULL), 0);
	assert_int_equal(process_args_add_numbers(&tids, "2", NULL), 0);
	assert_int_equal(tids.len, 2);
	assert_int_equal(process_args_add_numbers(&tids, "worker", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "'worker'"));
	vec_deinit(&tids);
}

static void test_numbers_are_taken_as_they_are(void **state)
{
	_cleanup_(process_args_deinit) struct process_args args = {0};
	_cleanup_(notes_deinit) struct notes missing = {0};
	struct process_ids ids = {0};

	assert_int_equal(process_args_add(&args, "2147483647,no-such name", NULL), 0);
	assert_int_equal(process_args_find(&args, NULL, &ids, &missing), 0);
	assert_int_equal(ids.len, 1);
	assert_int_equal(ids.data[0].pid, 2147483647);
	assert_int_equal(ids.data[0].start_time, 0);
	assert_int_equal(missing.len, 1);
	assert_non_null(strstr(missing.data[0], "there is no process named 'no-such name'"));
	vec_deinit(&ids);
}

static char name[24];
static int named[2];

static void tell_named(void)
{
	if (write(named[1], "n", 1) != 1)
		_exit(1);
}

static void sleeps_named(void)
{
	prctl(PR_SET_NAME, name);
	tell_named();
	child_sleeps();
}

/* Its number may be another one's when it is opened. */
static void test_found_by_name(void **state)
{
	_cleanup_(process_args_deinit) struct process_args args = {0};
	_cleanup_(notes_deinit) struct notes missing = {0};
	struct process_ids ids = {0};
	struct task_stat stat;
	char path[32], byte;
	pid_t pid;

	snprintf(name, sizeof(name), "of %d", (int)getpid()); /* names have at most 15 bytes */
	assert_int_equal(pipe(named), 0);
	pid = child_start(sleeps_named);
	assert_int_equal(read(named[0], &byte, 1), 1);
	assert_int_equal(process_args_add(&args, name, NULL), 0);
	assert_int_equal(process_args_find(&args, NULL, &ids, &missing), 0);
	assert_int_equal(ids.len, 1);
	assert_int_equal(ids.data[0].pid, pid);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	assert_int_equal(task_stat_read(AT_FDCWD, path, &stat), 0);
	assert_int_equal(ids.data[0].start_time, stat.start_time);
	child_end(pid);
	vec_deinit(&ids);
	close(named[0]);
	close(named[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_and_names),
		cmocka_unit_test(test_thread_numbers),
		cmocka_unit_test(test_numbers_are_taken_as_they_are),
		cmocka_unit_test(test_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
