/* SPDX-License-Identifier: MIT */
#include "report/report.h"

static int report_one(const struct trace *trace, const struct report_options *options, FILE *out)
{
	return report_json(trace, &(const struct deadlocks){0}, options, out);
}

#define REPORT report_one
#include "report_fixture.h"

static const struct report_options plain = {.kernel = true};

static void test_one_line(void **state)
{
	struct fixture *f = *state;
	const char *text = report(f, &f->trace, &plain);

	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	for (const char *p = text; *p != '\n'; p++)
		assert_true((unsigned char)*p >= 0x20);
}

static void test_process(void **state)
{
	expect(state, plain,
	       "{\"schema\":\"stakeout.snapshot/1\",\"pid\":4711,\"inner_pid\":null,\"cgroup\":null,\"container\":null,\"comm\":\"server\",\"exe\":\"/usr/bin/server\","
	       "\"arch\":\"x86_64\",\"taken_at\":\"2023-11-14T22:13:20.000000042Z\",\"runtimes\":[],"
	       "\"capture\":{\"method\":\"bpf\",\"stop_mode\":\"auto\",\"threads\":8,\"stopped_threads\":1,"
	       "\"retaken_threads\":2,\"max_pause_us\":23.417,\"windows\":3,\"window_us\":61.250,\"cpus_taken\":2,"
	       "\"instant\":\"2023-11-14T22:13:20.000000077Z\",\"consistent\":false,"
	       "\"inconsistent_reason\":\"1 thread moved\"},"
	       "\"timings_ms\":{\"setup\":0.500,\"capture\":1.900,\"unwind\":0.400,\"save\":0.100,\"symbolize\":3.100,\"total\":6.000},"
	       "\"notes\":[\"BPF is not permitted: registers come from /proc\"],"
	       "\"lacking\":[{\"module\":\"/usr/bin/server\",\"build_id\":null,"
	       "\"problem\":\"no debug information\",\"help\":null}],\"deadlocks\":[],\"likely_deadlocks\":[],\"threads\":[{");
}

static void test_container(void **state)
{
	struct fixture *f = *state;

	f->snap->inner_pid = 7;
	f->snap->threads.data[0].inner_tid = 8;
	f->snap->container = (struct container){.cgroup = "/docker/x", .engine = "docker", .id = "x"};
	expect(state, plain, "\"pid\":4711,\"inner_pid\":7,\"cgroup\":\"/docker/x\","
			     "\"container\":{\"engine\":\"docker\",\"id\":\"x\",\"pod\":null},\"comm\":");
	expect(state, plain, "{\"tid\":4711,\"inner_tid\":8,");
	f->snap->container = (struct container){.cgroup = "/x"};
	expect(state, plain, "\"cgroup\":\"/x\",\"container\":null,");
}

static void test_time_before_1970(void **state)
{
	struct fixture *f = *state;

	f->snap->taken_at_ns = -1;
	expect(state, plain, "\"taken_at\":\"1969-12-31T23:59:59.999999999Z\"");
}

static void test_thread(void **state)
{
	expect(state, plain,
	       "{\"tid\":4711,\"inner_tid\":null,\"name\":\"server\",\"state\":\"S\",\"status\":\"captured\",\"capture\":\"asleep\","
	       "\"status_reason\":null,\"stopped\":false,\"pause_us\":0.000,\"off_cpu_ms\":34.000,\"cpu_ms\":1520.000,"
	       "\"runtime\":null,"
	       "\"syscall\":{\"nr\":232,\"name\":\"epoll_wait\","
	       "\"args\":[\"0x5\",\"0x7ffc00001000\",\"0x2790\",\"0x64\"]},\"cpu\":null,\"waits_for\":null,"
	       "\"kernel_stack\":[{");
	expect(state, plain,
	       "\"name\":\"hasher\",\"state\":\"R\",\"status\":\"captured\",\"capture\":\"held\","
	       "\"status_reason\":null,\"stopped\":true,\"pause_us\":23.417,\"off_cpu_ms\":null,\"cpu_ms\":null,\"runtime\":null,\"syscall\":null,\"cpu\":0,\"waits_for\":null,"
	       "\"kernel_stack\":[],\"kernel_stack_error\":null,");
	expect(state, plain,
	       "\"status\":\"stop_timeout\",\"capture\":\"none\",\"status_reason\":\"it did not stop within 1000 ms\"");
	expect(state, plain,
	       "\"syscall\":{\"nr\":9999,\"name\":null,\"args\":[\"0x1\",\"0x2\",\"0x3\",\"0x4\",\"0x5\",\"0x6\"]}");
	expect(state, plain,
	       "\"user_stack\":[],\"user_stack_end\":\"not_captured\",\"user_stack_end_pc\":null,"
	       "\"user_stack_error\":null,\"tracer_pid\":99}");
	expect(state, plain,
	       "\"user_stack_end\":\"no_unwind_info\",\"user_stack_end_pc\":\"0x7f0000009999\","
	       "\"user_stack_error\":\"libc.so.6 has no CFI for this address\",\"tracer_pid\":null}");
}

static void test_runtime(void **state)
{
	const struct snap_runtime python = {.name = "python", .version = "3.11.2"}, java = {.name = "java", .problem = "too old"};
	struct fixture *f = *state;

	assert_non_null(snapshot_add_runtime(f->snap, &python));
	assert_non_null(snapshot_add_runtime(f->snap, &java));
	f->trace.threads.data[0].runtime =
		(struct thread_runtime){.runtime = "python", .version = "3.11.2", .name = "MainThread", .has_gil = true, .holds_gil = true};
	f->trace.threads.data[1].runtime = (struct thread_runtime){.runtime = "java", .state = "PARKED", .has_daemon = true, .is_daemon = true};
	expect(state, plain,
	       "\"runtimes\":[{\"name\":\"python\",\"version\":\"3.11.2\",\"problem\":null},"
	       "{\"name\":\"java\",\"version\":null,\"problem\":\"too old\"}]");
	expect(state, plain,
	       "\"runtime\":{\"name\":\"python\",\"version\":\"3.11.2\",\"thread_name\":\"MainThread\",\"state\":null,\"problem\":null,"
	       "\"daemon\":null,\"holds_gil\":true,\"waits_for_gil\":false},");
	expect(state, plain,
	       "\"runtime\":{\"name\":\"java\",\"version\":null,\"thread_name\":null,\"state\":\"PARKED\",\"problem\":null,"
	       "\"daemon\":true},");
}

static void test_names_are_escaped(void **state)
{
	expect(state, plain, "\"name\":\"evil\\u001b[31m\\\"\\\\\\ufffd\"");
}

static void test_values_of_a_newer_snapshot(void **state)
{
	struct fixture *f = *state;

	f->snap->threads.data[0].status = 200;
	f->snap->threads.data[0].capture = 200;
	f->snap->threads.data[0].state = '\0';
	expect(state, plain, "\"state\":\"?\",\"status\":\"unknown\",\"capture\":\"unknown\"");
}

static void test_frames(void **state)
{
	expect(state, plain,
	       "{\"address\":\"0x7f0000001056\",\"kind\":\"native\",\"symbol\":\"__epoll_wait\","
	       "\"symbol_source\":null,\"offset\":86,"
	       "\"module\":\"/usr/lib/libc.so.6\",\"build_id\":\"ab12\",\"module_offset\":\"0x1056\","
	       "\"source\":{\"file\":\"../sysdeps/unix/sysv/linux/epoll_wait.c\",\"line\":30,\"column\":10},"
	       "\"inlined\":false,\"found_by\":null},{");
	expect(state, plain,
	       "\"symbol\":\"aeMain\",\"symbol_source\":null,\"offset\":52,"
	       "\"module\":\"/usr/bin/server\",\"build_id\":null,"
	       "\"module_offset\":\"0x1234\",\"source\":null,\"inlined\":false,\"found_by\":\"cfi\"}]");
	expect(state, plain, "\"symbol\":\"mix\",\"symbol_source\":null,\"offset\":null,");
	expect(state, plain, "\"inlined\":true,");
	expect(state, plain, "\"kind\":\"signal\",\"symbol\":null,");
	expect(state, plain, "\"found_by\":\"frame_pointer\"}");
	expect(state, plain,
	       "{\"address\":\"0x12345678\",\"kind\":\"native\",\"symbol\":null,"
	       "\"symbol_source\":null,\"offset\":null,"
	       "\"module\":null,\"build_id\":null,\"module_offset\":null,\"source\":null,"
	       "\"inlined\":false,\"found_by\":\"scan\"}]");
	expect(state, plain,
	       "\"kind\":\"kernel\",\"symbol\":\"xfs_buf_lock\",\"symbol_source\":null,\"offset\":58,"
	       "\"module\":\"xfs\"");
}

static void test_symbol_sources(void **state)
{
	const struct stack stack = SAMPLE_STACK({.symbol = "f", .symbol_source = SYMBOL_SYMTAB},
						{.symbol = "g", .symbol_source = SYMBOL_PERF_MAP});
	struct fixture *f = *state;

	f->trace.threads.data[0].user = &stack;
	expect(state, plain, "\"symbol\":\"f\",\"symbol_source\":\"symtab\",");
	expect(state, plain, "\"symbol\":\"g\",\"symbol_source\":\"perf_map\",");
}

static void test_stack_pointers(void **state)
{
	expect_not(state, plain, "\"sp\":");
	expect(state, (struct report_options){.show_sp = true}, "\"found_by\":\"cfi\",\"sp\":\"0x7ffc00000010\"}");
}

static void test_registers(void **state)
{
	expect_not(state, plain, "\"registers\"");
	expect(state, (struct report_options){.registers = true},
	       "\"registers\":{\"rip\":\"0x7f0000001056\",\"rsp\":\"0x7ffc00000000\"},\"kernel_stack\":[]");
}

static void test_kernel_stacks_left_out(void **state)
{
	struct fixture *f = *state;
	const struct report_options none = {.kernel = false};

	f->snap->capture.kernel_stack_error = "not permitted";
	f->trace.kernel_symbols_error = "kallsyms is hidden";
	expect_not(state, none, "ep_poll");
	expect_not(state, none, "not permitted\"");
	expect_not(state, none, "kallsyms");
	expect(state, plain, "\"kernel_stack\":[],\"kernel_stack_error\":\"not permitted\"");
	expect(state, plain, ",\"kallsyms is hidden\"]");
}

static void test_stream_error(void **state)
{
	struct fixture *f = *state;
	FILE *full = fopen("/dev/full", "w");
	struct full_once once;

	assert_non_null(full);
	assert_int_equal(report_one(&f->trace, &plain, full), -ENOSPC);
	fclose(full);
	full = full_once_open(&once);
	assert_int_equal(report_one(&f->trace, &plain, full), -ENOSPC);
	assert_true(once.writes > 2);
	fclose(full);
}

static void test_tasks(void **state)
{
	struct fixture *f = *state;

	expect(state, plain, ",\"tasks\":[]}\n");
	sample_tasks(&f->trace);
	expect(state, plain,
	       "{\"runtime\":\"python\",\"library\":\"asyncio\",\"name\":\"Task-1\",\"tid\":4711,\"state\":\"suspended\","
	       "\"awaits\":{\"type\":\"Task\",\"task\":\"Task-2\",\"through\":null},\"stack\":[{");
	expect(state, plain, "\"awaits\":{\"type\":\"Future\",\"task\":null,\"through\":\"Reader\"},");
	expect(state, plain, "\"name\":\"ready\",\"tid\":4711,\"state\":\"suspended\",\"awaits\":null,");
	expect(state, plain, "\"problem\":\"a coroutine could not be read\"}");
	expect(state, plain, "\"name\":null,\"tid\":null,\"state\":\"created\",\"awaits\":null,");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_container, setup, teardown),
		cmocka_unit_test_setup_teardown(test_time_before_1970, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runtime, setup, teardown),
		cmocka_unit_test_setup_teardown(test_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_are_escaped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_values_of_a_newer_snapshot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_symbol_sources, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stack_pointers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_registers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel_stacks_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream_error, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tasks, setup, teardown),
	};

	return cmocka_run_group_tests_name("report_json", tests, NULL, NULL);
}
