/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <unistd.h>

#include "runtime/python/roster.h"

static void add(struct python_roster *roster, pid_t tid, uint64_t tstate)
{
	assert_true(python_roster_add(roster, &(struct python_thread){.tid = tid, .tstate = tstate}));
}

/* A thread has a thread state in each interpreter, which are told in the order in which they came. */
static void test_find(void **state)
{
	struct python_roster roster = {0};
	const struct python_thread *found;

	assert_null(python_roster_find(&roster, 7));
	add(&roster, 7, 1);
	add(&roster, 8, 2);
	add(&roster, 7, 3);
	found = python_roster_find(&roster, 7);
	assert_int_equal(found->tstate, 1);
	found = python_roster_find_other(&roster, found);
	assert_int_equal(found->tstate, 3);
	assert_null(python_roster_find_other(&roster, found));
	assert_int_equal(python_roster_find(&roster, 8)->tstate, 2);
	assert_null(python_roster_find_other(&roster, python_roster_find(&roster, 8)));
	assert_null(python_roster_find(&roster, 9));
	python_roster_deinit(&roster);
	assert_null(python_roster_find(&roster, 7));
	add(&roster, 9, 4); /* it can be used again */
	assert_int_equal(python_roster_find(&roster, 9)->tstate, 4);
	python_roster_deinit(&roster);
}

/* What cannot be listed, as a process that has no such layout, leaves what is known. */
static void test_list_fails(void **state)
{
	struct python_roster roster = {0};
	struct python_layout layout = {0};
	struct target *target;
	struct err err = {0};

	assert_int_equal(target_open_whole(getpid(), NULL, &err, &target), 0);
	add(&roster, 7, 1);
	assert_true(python_roster_list(&roster, &layout, target, &err) < 0);
	assert_true(err.msg[0]);
	assert_int_equal(python_roster_find(&roster, 7)->tstate, 1);
	python_roster_deinit(&roster);
	target_close(target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_list_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
