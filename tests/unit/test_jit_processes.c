/* SPDX-License-Identifier: MIT */
#include "exec_child.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "offcpu/feed/jit_processes.h"

struct fixture {
	struct jit_processes *processes;
	pid_t pid;
	char path[64]; /* of the file with its names */
	struct calls calls;
};

static int start(void **state)
{
	static struct fixture f;

	f = (struct fixture){.processes = jit_processes_create(), .pid = child_start(child_sleeps)};
	snprintf(f.path, sizeof(f.path), "/tmp/perf-%d.map", (int)f.pid);
	*state = &f;
	return f.processes ? 0 : -1;
}

static int finish(void **state)
{
	struct fixture *f = *state;

	child_end(f->pid);
	unlink(f->path);
	vec_deinit(&f->calls);
	jit_processes_destroy(f->processes);
	return 0;
}

static void write_names(const struct fixture *f, const char *text)
{
	FILE *map = fopen(f->path, "we");

	assert_non_null(map);
	fputs(text, map);
	assert_int_equal(fclose(map), 0);
}

static uint32_t add(struct fixture *f)
{
	return jit_processes_add(f->processes, f->pid, generation_of(f->pid));
}

static void assert_found(struct fixture *f, uint32_t number, uint64_t address, const char *name)
{
	const struct call *call;

	assert_true(jit_processes_find(f->processes, number, address, &f->calls));
	assert_int_equal(f->calls.len, 1);
	call = &f->calls.data[0];
	assert_int_equal(call->linkage_len, strlen(name));
	assert_memory_equal(call->linkage, name, strlen(name));
}

static void test_names(void **state)
{
	struct fixture *f = *state;
	uint32_t number = add(f);

	assert_int_equal(number, 1);
	assert_int_equal(add(f), number);
	jit_processes_keep(f->processes, number);
	write_names(f, "1000 100 made\n"); /* later than it was seen for the first time */
	assert_found(f, number, 0x1010, "made");
	assert_false(jit_processes_find(f->processes, number, 0x2000, &f->calls));
	assert_false(jit_processes_find(f->processes, 0, 0x1010, &f->calls));
	assert_false(jit_processes_find(f->processes, 2, 0x1010, &f->calls));
	jit_processes_keep(f->processes, 0);
	jit_processes_keep(f->processes, 2);
}

/* Its names are those that it had when it ended, whatever comes to its file afterwards. */
static void test_ended(void **state)
{
	struct fixture *f = *state;
	uint32_t number = add(f);

	jit_processes_keep(f->processes, number);
	write_names(f, "1000 100 made\n");
	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	assert_int_equal(jit_processes_end(f->processes, f->pid), number);
	jit_processes_read_names(f->processes, number);
	unlink(f->path);
	assert_found(f, number, 0x1010, "made");
}

/* Of a process without addresses that are to be named nothing is kept, but nobody gets its number. */
static void test_not_kept(void **state)
{
	struct fixture *f = *state;
	uint32_t number = add(f), next;

	write_names(f, "1000 100 made\n");
	assert_int_equal(jit_processes_end(f->processes, f->pid), 0);
	jit_processes_keep(f->processes, number);
	assert_false(jit_processes_find(f->processes, number, 0x1010, &f->calls));
	next = add(f);
	assert_int_not_equal(next, number);
	assert_int_not_equal(next, 0);
}

/* Another program in the same process. */
static void test_executed(void **state)
{
	struct fixture *f = *state;
	struct exec_child child = exec_child_start();
	uint64_t before = generation_of(child.pid), after;
	uint32_t first = jit_processes_add(f->processes, child.pid, before), second;

	assert_int_not_equal(first, 0);
	jit_processes_keep(f->processes, first);
	exec_child_exec(&child);
	after = generation_of(child.pid);
	assert_int_not_equal(after, before);
	second = jit_processes_add(f->processes, child.pid, after);
	assert_int_not_equal(second, 0);
	assert_int_not_equal(second, first);
	assert_int_equal(jit_processes_add(f->processes, child.pid, after), second);
	assert_int_equal(jit_processes_add(f->processes, child.pid, before), 0); /* too late for that one */
	exec_child_end(&child);
}

/* Names are of the program that had the number, whatever the process executes by then. */
static void test_executed_before_names_are_read(void **state)
{
	struct fixture *f = *state;
	struct exec_child child = exec_child_start();
	uint64_t before = generation_of(child.pid);
	uint32_t number = jit_processes_add(f->processes, child.pid, before);

	jit_processes_keep(f->processes, number);
	exec_child_exec(&child);
	assert_false(jit_processes_find(f->processes, number, 0x1010, &f->calls));
	exec_child_end(&child);
}

/* As whoever feeds BPF raises the limit. */
static void need_descriptors(rlim_t wanted)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < wanted) {
		print_message("skipped: only %llu files may be open\n", (unsigned long long)limit.rlim_max);
		skip();
	}
	limit.rlim_cur = limit.rlim_cur < wanted ? wanted : limit.rlim_cur;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void test_bounded(void **state)
{
	enum { OVER = 2 };
	struct fixture *f = *state;
	pid_t pids[JIT_PROCESSES_HELD + OVER];

	need_descriptors(16 * JIT_PROCESSES_HELD);
	for (uint32_t i = 0; i < JIT_PROCESSES_HELD + OVER; i++)
		pids[i] = child_start(child_sleeps);
	for (uint32_t i = 0; i < JIT_PROCESSES_HELD; i++) {
		assert_int_equal(jit_processes_add(f->processes, pids[i], generation_of(pids[i])), i + 1);
		jit_processes_keep(f->processes, i + 1);
	}
	assert_int_equal(jit_processes_over_limit(f->processes), 0);
	for (uint32_t i = JIT_PROCESSES_HELD; i < JIT_PROCESSES_HELD + OVER; i++) /* each process counts once */
		for (int times = 0; times < 2; times++)
			assert_int_equal(jit_processes_add(f->processes, pids[i], generation_of(pids[i])), 0);
	assert_int_equal(jit_processes_over_limit(f->processes), OVER);
	for (uint32_t i = 0; i < JIT_PROCESSES_HELD + OVER; i++)
		child_end(pids[i]);
}

static void test_gone(void **state)
{
	struct fixture *f = *state;

	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	assert_int_equal(add(f), 0);
	assert_int_equal(jit_processes_end(f->processes, f->pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, start, finish),
		cmocka_unit_test_setup_teardown(test_ended, start, finish),
		cmocka_unit_test_setup_teardown(test_not_kept, start, finish),
		cmocka_unit_test_setup_teardown(test_executed, start, finish),
		cmocka_unit_test_setup_teardown(test_executed_before_names_are_read, start, finish),
		cmocka_unit_test_setup_teardown(test_bounded, start, finish),
		cmocka_unit_test_setup_teardown(test_gone, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
