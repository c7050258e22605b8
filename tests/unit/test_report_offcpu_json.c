/* SPDX-License-Identifier: MIT */
#define REPORT report_offcpu_json
#include "offcpu_sample.h"

static const struct offcpu_report_options plain;
static const struct offcpu_report_options hiding = {.hide_idle = true};

static void test_one_line(void **state)
{
	const char *text = report(*state, plain);

	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	for (const char *p = text; *p != '\n'; p++)
		assert_true((unsigned char)*p >= 0x20);
}

static void test_head(void **state)
{
	expect(state, plain,
	       "{\"schema\":\"stakeout.offcpu/1\",\"start_time\":\"2023-11-14T22:13:20.000000042Z\",\"method\":\"sched_exit\",\"estimate\":false,"
	       "\"duration_ns\":10000000000,\"min_ns\":1000000,\"max_ns\":null,\"states\":[\"S\",\"D\",\"R\"],"
	       "\"notes\":[\"no \\u001b[31mkernel stacks: run as root\"],"
	       "\"lost\":{\"waits\":12,\"stacks\":0,\"requests\":1},"
	       "\"incomplete\":[{\"what\":\"user_stack\",\"reason\":\"EFAULT: stack page not resident\",\"waits\":4,"
	       "\"total_ns\":600000000},"
	       "{\"what\":\"user_stack\",\"reason\":\"no unwind tables yet\",\"waits\":1,\"total_ns\":300000000},"
	       "{\"what\":\"kernel_stack\",\"reason\":\"not permitted\",\"waits\":30,\"total_ns\":90000000}],"
	       "\"total_time_ns\":9990000900,\"total_events\":127,\"unfinished_events\":1,\"avg_time_ns\":78661424,"
	       "\"max_time_ns\":300000000,\"min_time_ns\":300,"
	       "\"sleeping_time_ns\":9598000900,\"uninterruptible_time_ns\":300000000,\"runnable_time_ns\":92000000,"
	       "\"idle\":{\"stacks\":1,\"count\":90,\"total_ns\":9000000000,\"hidden\":false},"
	       "\"causes\":[{\"cause\":\"no CPU\",\"count\":30,\"total_ns\":92000000,\"idle_ns\":0},"
	       "{\"cause\":\"lock\",\"count\":4,\"total_ns\":598000000,\"idle_ns\":0},");
	expect(state, plain,
	       "{\"cause\":\"events\",\"count\":90,\"total_ns\":9000000000,\"idle_ns\":9000000000},");
	expect(state, plain,
	       "{\"cause\":\"other\",\"count\":2,\"total_ns\":900,\"idle_ns\":0}],"
	       "\"top_blocking_threads\":[{\"pid\":4711,\"tid\":4711,\"thread\":\"4711:4711\","
	       "\"thread_name\":\"server\",\"time_ms\":9000.000,\"percentage\":90.090},");
}

static void test_filter(void **state)
{
	struct fixture *f = *state;

	f->profile.filter = (struct offcpu_filter){.max_ns = 20 * SAMPLE_MS, .uninterruptible = true};
	expect(state, plain, "\"min_ns\":0,\"max_ns\":20000000,\"states\":[\"D\"],");
}

static void test_estimate(void **state)
{
	struct fixture *f = *state;

	f->profile.estimate = true;
	expect(state, plain, "\"estimate\":true,");
}

static void test_threads(void **state)
{
	expect(state, plain,
	       "{\"pid\":99,\"tid\":99,\"thread\":\"99:99\","
	       "\"thread_name\":\"evil\\u001b[31m\\\"\\\\\\ufffd;\\u000a\",\"time_ms\":0.000,"
	       "\"percentage\":0.000}],\"thread_stats\":{");
	expect(state, plain,
	       "\"4711:4712\":{\"thread_name\":\"worker\",\"count\":34,\"unfinished\":0,\"total_time_ns\":690000000,"
	       "\"avg_time_ns\":20294117,\"max_time_ns\":300000000,\"min_time_ns\":1000000,"
	       "\"sleeping_time_ns\":598000000,\"uninterruptible_time_ns\":0,\"runnable_time_ns\":92000000,"
	       "\"idle_time_ns\":0,\"on_cpu_time_ns\":null,\"elapsed_time_ns\":null},");
	expect(state, plain, "\"4711:4711\":{\"thread_name\":\"server\",\"count\":90,\"unfinished\":1,");
	expect(state, plain, "\"runnable_time_ns\":0,\"idle_time_ns\":9000000000,");
	expect(state, plain, "\"99:99\":{");
}

static void test_on_cpu(void **state)
{
	struct fixture *f = *state;

	f->profile.threads.data[0].elapsed_ns = 9500 * SAMPLE_MS;
	f->profile.threads.data[0].on_cpu_ns = 250 * SAMPLE_MS;
	expect(state, plain, "\"idle_time_ns\":9000000000,\"on_cpu_time_ns\":250000000,\"elapsed_time_ns\":9500000000},");
}

/* Numbers that were used again: each thread and row has a name of its own. */
static void test_reused_numbers(void **state)
{
	struct fixture *f = *state;

	f->profile.threads.data[1].tid = f->profile.threads.data[0].tid;
	f->profile.threads.data[1].nth = f->profile.rows.data[0].nth = 2;
	expect(state, plain, "\"4711:4711\":{");
	expect(state, plain, "\"4711:4711#2\":{\"thread_name\":\"worker\"");
	expect(state, plain, "\"thread\":\"4711:4711#2\",\"thread_name\":\"worker\"");
	expect(state, plain, "\"state\":\"S\",\"thread\":\"4711:4711#2\"");
}

/* The list of the heaviest is short; the table has all. */
static void test_top_threads(void **state)
{
	struct fixture *f = *state;
	const struct offcpu_thread thread = f->profile.threads.data[1];
	const char *text;
	size_t n = 0;

	while (f->profile.threads.len < 25) {
		assert_true(vec_push(&f->profile.threads, thread));
		f->profile.threads.data[f->profile.threads.len - 1].tid = 5000 + (pid_t)f->profile.threads.len;
	}
	text = report(f, plain);
	for (const char *p = text; (p = strstr(p, "\"percentage\":")); p++)
		n++;
	assert_int_equal(n, 10);
	assert_non_null(strstr(text, "\"4711:5025\":{"));
}

static void test_stacks(void **state)
{
	expect(state, plain,
	       "\"stacks\":[{\"pid\":4711,\"tid\":4711,\"thread_name\":\"server\",\"state\":\"S\","
	       "\"thread\":\"4711:4711\",\"count\":90,\"unfinished\":1,"
	       "\"total_ns\":9000000000,\"max_ns\":100000000,\"min_ns\":99000000,\"p50_ns\":99500000,\"p99_ns\":100000000,\"runnable_ns\":0,\"cause\":\"events\",\"idle\":true,\"waits_for\":null,"
	       "\"kernel_stack\":[{\"address\":\"0xffffffff81000000\",\"kind\":\"kernel\",\"symbol\":\"ep_poll\",");
	expect(state, plain,
	       "\"kernel_stack_error\":null,\"user_stack\":[{\"address\":\"0x7f0000001056\",\"kind\":\"native\","
	       "\"symbol\":\"__epoll_wait\",");
	expect(state, plain, "\"found_by\":\"cfi\"}],\"user_stack_error\":null,\"waker\":null},{");
	expect(state, plain,
	       "\"user_stack_error\":\"EFAULT: stack page not resident\",\"waker\":{\"pid\":4711,\"tid\":4711,"
	       "\"thread_name\":\"server\",\"kernel_stack\":[{");
	expect(state, plain, "\"kernel_stack\":[],\"kernel_stack_error\":\"not permitted\",\"user_stack\":[{");
	expect(state, plain,
	       "\"pid\":99,\"tid\":null,\"thread_name\":\"evil\\u001b[31m\\\"\\\\\\ufffd;\\u000a\","
	       "\"state\":\"S\",\"thread\":null,"
	       "\"count\":2,\"unfinished\":0,\"total_ns\":900,\"max_ns\":600,\"min_ns\":300,\"p50_ns\":null,\"p99_ns\":null,\"runnable_ns\":0,\"cause\":\"other\","
	       "\"idle\":false,\"waits_for\":null,\"kernel_stack\":[],\"kernel_stack_error\":null,\"user_stack\":[],"
	       "\"user_stack_error\":null,\"waker\":null}],\"lacking\":[{\"module\":\"/usr/bin/server\","
	       "\"build_id\":null,\"problem\":\"no debug information\",\"help\":null}]}\n");
	expect_not(state, plain, "\"sp\":");
}

static void test_waker_errors(void **state)
{
	struct fixture *f = *state;

	expect(state, plain, "}],\"kernel_stack_error\":null,\"user_stack\":[{");
	expect(state, plain, "}],\"user_stack_error\":null}},{\"pid\":4711,\"tid\":4713,");
	f->profile.rows.data[1].waker.kernel_error = "EFAULT: Bad address";
	f->profile.rows.data[1].waker.user_error = "it ends";
	expect(state, plain, "}],\"kernel_stack_error\":\"EFAULT: Bad address\",\"user_stack\":[{");
	expect(state, plain, "}],\"user_stack_error\":\"it ends\"}},{\"pid\":4711,\"tid\":4713,");
}

static void test_idle_is_hidden(void **state)
{
	expect_not(state, hiding, "ep_poll");
	expect(state, hiding, "\"total_ns\":9000000000,\"hidden\":true}");
	expect(state, hiding, "\"total_time_ns\":9990000900,");
	expect(state, hiding, "\"4711:4711\":{");
	expect(state, hiding, "\"top_blocking_threads\":[{\"pid\":4711,\"tid\":4712,");
	((struct fixture *)*state)->profile.threads.data[0].idle_ns -= 1; /* it does something else as well */
	expect(state, hiding, "\"top_blocking_threads\":[{\"pid\":4711,\"tid\":4711,");
}

static void test_nothing(void **state)
{
	const char *text;

	clear(*state);
	text = report(*state, plain);
	assert_non_null(strstr(text, "{\"schema\":\"stakeout.offcpu/1\",\"start_time\":\"1970-01-01T00:00:00.000000000Z\","
				     "\"method\":\"switch\",\"estimate\":false,\"duration_ns\":0,\"min_ns\":1000000,"
				     "\"max_ns\":null,\"states\":[\"S\",\"D\",\"R\"],\"notes\":[],\"lost\":{},\"incomplete\":[],"
				     "\"total_time_ns\":0,\"total_events\":0,\"unfinished_events\":0,\"avg_time_ns\":0,"
				     "\"max_time_ns\":0,\"min_time_ns\":0,\"sleeping_time_ns\":0,"
				     "\"uninterruptible_time_ns\":0,\"runnable_time_ns\":0,"
				     "\"idle\":{\"stacks\":0,\"count\":0,\"total_ns\":0,\"hidden\":false},\"causes\":["));
	assert_non_null(strstr(text, "{\"cause\":\"other\",\"count\":0,\"total_ns\":0,\"idle_ns\":0}],"
				     "\"top_blocking_threads\":[],\"thread_stats\":{},\"processes\":[],\"stacks\":[],\"lacking\":[]}\n"));
}

static void test_programs(void **state)
{
	struct fixture *f = *state;
	struct offcpu_row *row = &f->profile.rows.data[0];

	assert_true(vec_push(&f->profile.processes, (struct offcpu_identity){.pid = 7, .name = "server", .file = "/bin/server",
									     .command_line = "server -p \t1"}));
	assert_true(vec_push(&f->profile.processes, (struct offcpu_identity){.pid = 8}));
	expect(state, plain, "\"processes\":[{\"pid\":7,\"name\":\"server\",\"program\":\"/bin/server\","
			     "\"cmdline\":\"server -p \\u00091\",\"inner_pid\":null,\"cgroup\":null,\"container\":null},"
			     "{\"pid\":8,\"name\":null,\"program\":null,\"cmdline\":null,\"inner_pid\":null,\"cgroup\":null,\"container\":null}],");
	expect_not(state, plain, "\"pids\"");
	for (pid_t pid = 100; pid < 170; pid++)
		assert_true(vec_push(&f->profile.members, (struct offcpu_member){.pid = pid, .nthreads = 2}));
	row->program = 1;
	row->pid = row->tid = 0;
	row->nmembers = 2;
	expect(state, plain, "{\"pid\":null,\"tid\":null,\"thread_name\":\"server\",\"state\":\"S\",\"thread\":null,"
			     "\"processes\":2,\"threads\":4,\"pids\":[100,101],\"count\":90,");
	row->nmembers = 70;
	expect(state, plain, "\"processes\":70,\"threads\":140,\"pids\":[100,");
	expect(state, plain, ",162,163],\"count\":90,"); /* no more than 64 */
	row->nmembers = 1;
	row->pid = 100;
	expect(state, plain, "{\"pid\":100,\"tid\":null,\"thread_name\":\"server\",\"state\":\"S\",\"thread\":null,"
			     "\"processes\":1,\"threads\":2,\"pids\":[100],");
}

/* A share of more than 64 bits can multiply. */
static void test_large_totals(void **state)
{
	struct fixture *f = *state;

	f->profile.total.total_ns = UINT64_MAX;
	f->profile.threads.data[0].sum.total_ns = UINT64_MAX / 4 + 1;
	expect(state, plain, "\"time_ms\":4611686018427.387,\"percentage\":25.000}");
}

static const char *write_events(struct fixture *f, const struct offcpu_event *events, size_t n)
{
	struct offcpu_event_stacks stacks = {0};
	size_t len;
	FILE *out = open_memstream(&f->text, &len);

	assert_int_equal(report_offcpu_events_begin(&f->profile, out), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(report_offcpu_event(&stacks, &events[i], out), 0);
	assert_int_equal(report_offcpu_events_end(&f->profile, out), 0);
	fclose(out);
	offcpu_event_stacks_deinit(&stacks);
	return f->text;
}

static void test_events(void **state)
{
	struct fixture *f = *state;
	const struct offcpu_event event = {
		.time_ns = INT64_C(1700000000000000042),
		.duration_ns = 1500,
		.runnable_ns = 200,
		.unfinished = true,
		.what = &f->profile.rows.data[4],
	};

	assert_string_equal(
		write_events(f, &event, 1),
		"{\"type\":\"begin\",\"schema\":\"stakeout.offcpu-events/2\",\"start_time\":\"2023-11-14T22:13:20.000000042Z\","
		"\"method\":\"sched_exit\",\"estimate\":false,\"min_ns\":1000000,\"max_ns\":null,\"states\":[\"S\",\"D\",\"R\"]}\n"
		"{\"type\":\"stack\",\"stack\":1,\"kernel_stack\":[],\"kernel_stack_error\":null,\"user_stack\":[],"
		"\"user_stack_error\":null}\n"
		"{\"type\":\"wait\",\"time\":\"2023-11-14T22:13:20.000000042Z\",\"duration_ns\":1500,"
		"\"runnable_ns\":200,\"unfinished\":true,\"pid\":99,\"tid\":null,\"thread_name\":\"evil\\u001b[31m\\\"\\\\\\ufffd;"
		"\\u000a\","
		"\"state\":\"S\",\"stack\":1,\"waker\":null}\n"
		"{\"type\":\"end\",\"duration_ns\":10000000000,"
		"\"notes\":[\"no \\u001b[31mkernel stacks: run as root\"],"
		"\"lost\":{\"waits\":12,\"stacks\":0,\"requests\":1},\"total_time_ns\":9990000900,\"total_events\":127,"
		"\"unfinished_events\":1,\"avg_time_ns\":78661424,\"max_time_ns\":300000000,\"min_time_ns\":300}\n");
}

/* How often a text is in another. */
static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	while ((text = strstr(text, part))) {
		text++;
		n++;
	}
	return n;
}

/* A stack has one line, before the first wait that has it; one that ends for another reason is another stack. */
static void test_event_stacks(void **state)
{
	struct fixture *f = *state;
	struct offcpu_row other_reason = f->profile.rows.data[1];
	const struct offcpu_event events[] = {{.what = &f->profile.rows.data[1]}, {.what = &f->profile.rows.data[0]},
					      {.what = &f->profile.rows.data[1]}, {.what = &other_reason}};
	const char *text;

	other_reason.user_error = "another reason";
	text = write_events(f, events, sizeof(events) / sizeof(events[0]));
	assert_int_equal(count(text, "{\"type\":\"stack\""), 4);
	assert_int_equal(count(text, "{\"type\":\"stack\",\"stack\":1,\"kernel_stack\":[{"), 1);
	assert_int_equal(count(text, "\"user_stack_error\":\"EFAULT: stack page not resident\"}"), 1);
	assert_int_equal(count(text, "\"user_stack_error\":\"another reason\"}"), 1);
	assert_int_equal(count(text, "\"thread_name\":\"worker\",\"state\":\"S\",\"stack\":1,"
				     "\"waker\":{\"pid\":4711,\"tid\":4711,\"thread_name\":\"server\",\"stack\":2}}\n"),
			 2);
	assert_int_equal(count(text, "\"state\":\"S\",\"stack\":4,\"waker\":{\"pid\":4711,\"tid\":4711,\"thread_name\":\"server\",\"stack\":2}}\n"), 1);
	assert_true(strstr(text, "{\"type\":\"stack\",\"stack\":3") < strstr(text, "\"stack\":3,\"waker\":null}\n"));
}

static void test_stream_error(void **state)
{
	struct fixture *f = *state;
	struct offcpu_event event = {.what = &f->profile.rows.data[1]};
	struct offcpu_event_stacks stacks = {0};
	FILE *full = fopen("/dev/full", "w");
	struct full_once once;

	expect_stream_error(state);
	assert_non_null(full);
	assert_int_equal(report_offcpu_events_begin(&f->profile, full), -ENOSPC);
	assert_int_equal(report_offcpu_event(&stacks, &event, full), -EIO);
	fclose(full);
	full = full_once_open(&once);
	offcpu_event_stacks_deinit(&stacks);
	stacks = (struct offcpu_event_stacks){0};
	assert_int_equal(report_offcpu_event(&stacks, &event, full), -ENOSPC);
	assert_int_equal(report_offcpu_event(&stacks, &event, full), -EIO);
	offcpu_event_stacks_deinit(&stacks);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_head, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filter, setup, teardown),
		cmocka_unit_test_setup_teardown(test_estimate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_on_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reused_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_top_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stacks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waker_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_is_hidden, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_programs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_totals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_event_stacks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream_error, setup, teardown),
	};

	return cmocka_run_group_tests_name("report_offcpu_json", tests, NULL, NULL);
}
