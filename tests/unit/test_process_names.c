/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "scratch.h"
#include "target/process_names.h"

static char script[128];

static void sleeps_renamed(void)
{
	prctl(PR_SET_NAME, "a child's name");
	child_sleeps();
}

static bool is_named(const struct process_names *names, pid_t pid, const char *name)
{
	for (size_t i = 0; i < names->len; i++)
		if (names->data[i].id.pid == pid && (!name || strcmp(names->data[i].name, name) == 0))
			return true;
	return false;
}

static struct process_names list(struct arena *arena)
{
	struct process_names names = {0};

	assert_int_equal(process_names_list(arena, NULL, &names), 0);
	return names;
}

static void test_comm_and_program(void **state)
{
	struct arena *arena = arena_create();
	pid_t child = child_start(sleeps_renamed);
	struct process_names names = {0};

	do { /* until it has renamed itself */
		vec_deinit(&names);
		names = list(arena);
	} while (!is_named(&names, child, "a child's name"));
	assert_true(is_named(&names, child, "test_process_names"));
	child_end(child);
	vec_deinit(&names);
	arena_destroy(arena);
}

static void test_neither_us_nor_our_ancestors(void **state)
{
	struct arena *arena = arena_create();
	struct process_names names = list(arena);

	assert_false(is_named(&names, getpid(), NULL));
	assert_false(is_named(&names, getppid(), NULL));
	vec_deinit(&names);
	arena_destroy(arena);
}

static void exits(void)
{
}

static void test_not_what_has_ended(void **state)
{
	struct arena *arena = arena_create();
	pid_t child = child_start(exits);
	struct process_names names;
	siginfo_t ended;

	assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
	names = list(arena);
	assert_false(is_named(&names, child, NULL));
	child_end(child);
	vec_deinit(&names);
	arena_destroy(arena);
}

static void test_portrait(void **state)
{
	struct arena *arena = arena_create();
	pid_t child = child_start(child_sleeps);
	struct process_portrait portrait;

	assert_int_equal(process_portrait(child, arena, &portrait), 0);
	assert_int_equal(portrait.pid, child);
	assert_int_equal(portrait.uid, geteuid());
	assert_int_equal(portrait.threads, 1);
	assert_non_null(strstr(portrait.command_line, "test_process_names"));
	child_end(child);
	assert_int_equal(process_portrait(child, arena, &portrait), -ESRCH);
	arena_destroy(arena);
}

static void test_programs(void **state)
{
	struct arena *arena = arena_create();
	pid_t child = child_start(child_sleeps);
	const pid_t pids[] = {child, 0, getpid()};
	struct process_program programs[3];
	bool lines = true;

	assert_int_equal(process_programs(pids, 3, arena, &lines, programs), 2);
	assert_int_equal(programs[0].pid, child);
	assert_non_null(strstr(programs[0].file, "/test_process_names"));
	assert_string_equal(programs[0].file, programs[1].file);
	assert_non_null(strstr(programs[0].command_line, "test_process_names"));
	assert_null(programs[0].script);
	assert_true(programs[0].start_ns >= programs[1].start_ns && programs[1].start_ns);
	assert_int_equal(programs[1].pid, getpid());
	assert_true(lines);
	lines = false;
	assert_int_equal(process_programs(pids, 1, arena, &lines, programs), 1);
	assert_null(programs[0].command_line);
	child_end(child);
	assert_int_equal(process_programs(pids, 1, arena, &lines, programs), 0);
	assert_int_equal(process_programs(pids, 0, arena, &lines, programs), 0);
	arena_destroy(arena);
}

enum { OPTIONS = 100, LOOKS = 10000 };

static void runs_script(void)
{
	char *args[OPTIONS + 3] = {"sh"};

	for (size_t i = 0; i < OPTIONS; i++)
		args[i + 1] = "-euuu";
	args[OPTIONS + 1] = script;
	execv("/bin/sh", args);
	_exit(1);
}

/* Its name comes from the whole command line, of which less is kept. */
static void test_script_behind_many_options(void **state)
{
	struct arena *arena = arena_create();
	struct process_program program = {0};
	bool lines = true;
	struct scratch s;
	pid_t child;

	scratch_init(&s);
	scratch_run(&s, "mkfifo wait && echo 'read line <%s/wait' >wait.sh", s.dir);
	snprintf(script, sizeof(script), "%s/wait.sh", s.dir);
	child = child_start(runs_script);
	for (int i = 0; i < LOOKS && !program.script; i++) /* it may not have been executed yet */
		assert_int_equal(process_programs(&child, 1, arena, &lines, &program), 1);
	assert_non_null(program.script);
	assert_string_equal(program.script, "wait.sh");
	assert_string_equal(program.script_word, script);
	assert_int_equal(strlen(program.command_line), PROCESS_LINE_BYTES - 1);
	child_end(child);
	scratch_deinit(&s);
	arena_destroy(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comm_and_program),
		cmocka_unit_test(test_neither_us_nor_our_ancestors),
		cmocka_unit_test(test_not_what_has_ended),
		cmocka_unit_test(test_portrait),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_script_behind_many_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
