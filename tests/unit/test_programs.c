/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "offcpu/programs.h"
#include "target/process_names.h"

static struct waits *waits;

static void add_wait(pid_t pid, pid_t tid, const char *name, uint64_t start_ns)
{
	struct offcpu_wait wait = {.kind = OFFCPU_WAIT, .duration_ns = 1000};

	wait.key.tgid = (uint32_t)pid;
	wait.key.tid = (uint32_t)tid;
	wait.key.state = 'S';
	wait.key.process_start_ns = start_ns;
	wait.key.thread_start_ns = start_ns + (uint64_t)(tid - pid);
	strncpy(wait.comm, name, sizeof(wait.comm) - 1);
	assert_non_null(waits_add_wait(waits, &wait, sizeof(wait)));
}

static int setup(void **state)
{
	const struct waits_options options = {.max_rows = 10};

	waits = waits_create(NULL, &options);
	return waits ? 0 : -1;
}

static int teardown(void **state)
{
	waits_destroy(waits);
	return 0;
}

/* By the clock that BPF has starts by. */
static uint64_t started_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t start_of(pid_t pid)
{
	struct arena *arena = arena_create();
	struct process_program program;
	bool lines = true;

	assert_int_equal(process_programs(&pid, 1, arena, &lines, &program), 1);
	arena_destroy(arena);
	return program.start_ns;
}

static void test_living_process(void **state)
{
	struct programs *programs = programs_create();
	struct offcpu_profile profile = {0};
	pid_t child = child_start(child_sleeps);

	add_wait(child, child + 1, "thread", 0);
	programs_read_waiting(programs, waits);
	assert_true(programs_fill(programs, waits, &profile));
	assert_int_equal(profile.processes.len, 1);
	assert_int_equal(profile.processes.data[0].pid, child);
	assert_string_equal(profile.processes.data[0].name,
			    "test_programs"); /* of the main thread, which has no waits */
	assert_non_null(strstr(profile.processes.data[0].file, "/test_programs"));
	assert_non_null(strstr(profile.processes.data[0].command_line, "test_programs"));
	add_wait(child, child, "main", 0);
	offcpu_profile_deinit(&profile);
	profile = (struct offcpu_profile){0};
	assert_true(programs_fill(programs, waits, &profile));
	assert_string_equal(profile.processes.data[0].name,
			    "main"); /* the name when it waited is the one of the report */
	offcpu_profile_deinit(&profile);
	child_end(child);
	programs_destroy(programs);
}

/* A number that was used again is another process. */
static void test_which_process(void **state)
{
	const uint64_t hour = 3600 * UINT64_C(1000000000), now = started_now();
	struct programs *programs = programs_create();
	struct offcpu_profile profile = {0};
	pid_t child = child_start(child_sleeps);

	add_wait(child, child, "before", now + hour);
	add_wait(child, child, "child", start_of(child));
	programs_read(programs, &child, 1);
	assert_true(programs_fill(programs, waits, &profile));
	assert_int_equal(profile.processes.len, 2);
	assert_string_equal(profile.processes.data[0].name, "child");
	assert_non_null(profile.processes.data[0].file);
	assert_string_equal(profile.processes.data[1].name, "before");
	assert_null(profile.processes.data[1].file);
	assert_ptr_equal(offcpu_profile_process(&profile, child, now + hour), &profile.processes.data[1]);
	assert_null(offcpu_profile_process(&profile, child, 1));
	assert_null(offcpu_profile_process(&profile, child + 1, now + hour));
	offcpu_profile_deinit(&profile);
	child_end(child);
	programs_destroy(programs);
}

/* What was read at the start is known to the end. */
static void test_ended_process(void **state)
{
	struct programs *programs = programs_create();
	struct offcpu_profile profile = {0};
	pid_t child = child_start(child_sleeps);

	add_wait(child, child, "child", 0);
	programs_read_all(programs);
	child_end(child);
	programs_read_waiting(programs, waits);
	assert_true(programs_fill(programs, waits, &profile));
	assert_non_null(profile.processes.data[0].file);
	offcpu_profile_deinit(&profile);
	programs_destroy(programs);
}

static void test_unknown_process(void **state)
{
	struct programs *programs = programs_create();
	struct offcpu_profile profile = {0};

	add_wait(1 << 30, 1 << 30, "ghost", 0);
	programs_read_waiting(programs, waits);
	assert_true(programs_fill(programs, waits, &profile));
	assert_int_equal(profile.processes.len, 1);
	assert_string_equal(profile.processes.data[0].name, "ghost");
	assert_null(profile.processes.data[0].file);
	assert_null(profile.processes.data[0].command_line);
	offcpu_profile_deinit(&profile);
	programs_destroy(programs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_living_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_which_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ended_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_process, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
