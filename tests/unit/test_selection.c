/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <stdio.h>

#include "cmd/selection.h"
#include "sample.h"

/* How many of the sample's threads are left. */
static size_t count(const struct selection *selection)
{
	struct snapshot *snap = sample_snapshot();
	struct trace trace;
	size_t n;

	sample_trace(&trace, snap);
	selection_apply(selection, &trace);
	n = trace.threads.len;
	trace_deinit(&trace);
	snapshot_destroy(snap);
	return n;
}

static size_t count_states(const char *letters)
{
	struct selection selection = {0};

	assert_int_equal(selection_add_states(&selection, letters, NULL), 0);
	return count(&selection);
}

static size_t count_regex(const char *regex)
{
	struct selection selection = {0};
	size_t n;

	assert_int_equal(selection_set_regex(&selection, regex, NULL), 0);
	n = count(&selection);
	selection_deinit(&selection);
	return n;
}

static void test_states(void **state)
{
	struct selection selection = {0};
	struct err err = {0};

	assert_int_equal(count(&selection), SAMPLE_THREADS);
	assert_int_equal(count_states("R"), 1);
	assert_int_equal(count_states("R,D"), 2);
	assert_int_equal(count_states("RDDR"), 2);
	assert_int_equal(count_states("T"), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(selection_add_states(&selection, "RSDTtZXIP", &err), 0);
	assert_int_equal(count(&selection), SAMPLE_THREADS);
	assert_int_equal(selection_add_states(&selection, "Q", &err), -EINVAL);
	assert_int_equal(selection_add_states(&selection, "", &err), -EINVAL);
	assert_int_equal(selection_add_states(&selection, "R,", &err), -EINVAL);
	assert_int_equal(selection_add_states(&selection, ",R", &err), -EINVAL);
}

static void test_names(void **state)
{
	assert_int_equal(count(&(struct selection){.name = "work*"}), 2);
	assert_int_equal(count(&(struct selection){.name = "[wf]*er"}), 3);
	assert_int_equal(count(&(struct selection){.name = "work"}), 0);
	assert_int_equal(count(&(struct selection){.name = "work*", .states = "D"}), 0);
}

/* A thread that a language runtime knows has two names: either selects it. */
static void test_runtime_names(void **state)
{
	static const char *const patterns[] = {"loop*", "server"};

	for (size_t i = 0; i < 2; i++) {
		struct snapshot *snap = sample_snapshot();
		struct trace trace;

		sample_trace(&trace, snap);
		snprintf(snap->threads.data[0].name, sizeof(snap->threads.data[0].name), "server");
		trace.threads.data[0].runtime.name = "looper";
		selection_apply(&(struct selection){.name = patterns[i]}, &trace);
		assert_int_equal(trace.threads.len, 1);
		assert_string_equal(trace_thread_name(&trace.threads.data[0]), "looper");
		trace_deinit(&trace);
		snapshot_destroy(snap);
	}
}

/* How many of the sample's tasks are left. */
static size_t count_tasks(const struct selection *selection)
{
	struct snapshot *snap = sample_snapshot();
	struct trace trace;
	size_t n;

	sample_trace(&trace, snap);
	sample_tasks(&trace);
	selection_apply(selection, &trace);
	n = trace.tasks.len;
	trace_deinit(&trace);
	snapshot_destroy(snap);
	return n;
}

/* They have names and stacks of their own; their state is that of the thread which runs them. */
static void test_tasks(void **state)
{
	struct selection selection = {0};

	assert_int_equal(count_tasks(&selection), 16);
	assert_int_equal(count_tasks(&(struct selection){.states = "S"}), 15);
	assert_int_equal(count_tasks(&(struct selection){.states = "R"}), 0);
	assert_int_equal(count_tasks(&(struct selection){.name = "Task-1*"}), 3);
	assert_int_equal(selection_set_regex(&selection, "^Worker\\.run$|^Task-2$", NULL), 0);
	assert_int_equal(count_tasks(&selection), 12);
	selection_deinit(&selection);
}

static void test_regex(void **state)
{
	struct selection selection = {0};
	struct err err = {0};

	assert_int_equal(count_regex("^aeMain$"), 1);	      /* a function */
	assert_int_equal(count_regex("^futex$"), 3);	      /* a system call */
	assert_int_equal(count_regex("hash\\.c:80$"), 1);      /* a line */
	assert_int_equal(count_regex("/bin/server|xfs_"), 3); /* a module, a function of the kernel */
	assert_int_equal(count_regex("nowhere"), 0);
	assert_int_equal(selection_set_regex(&selection, "(", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "--grep"));
	assert_int_equal(selection_set_regex(&selection, "a", &err), 0);
	assert_int_equal(selection_set_regex(&selection, "b", &err), -EINVAL);
	selection_deinit(&selection);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_runtime_names),
		cmocka_unit_test(test_regex),
		cmocka_unit_test(test_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
