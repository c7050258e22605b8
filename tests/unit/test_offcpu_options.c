/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/offcpu_options.h"
#include "cmd/parse.h"

static struct err err;

/* Up to the NULL; to be ended with offcpu_options_deinit(). */
static int read_options(struct offcpu_options *o, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	optind = 0; /* getopt starts anew */
	err = (struct err){0};
	return offcpu_options_read(o, argc, argv, &err);
}

#define READ(o, ...) read_options((o), (char *[]){"offcpu", __VA_ARGS__, NULL})

/* The strings and the command stay in the array. */
#define OPTIONS(name, ...)                                                                                             \
	char *name##_argv[] = {"offcpu", __VA_ARGS__, NULL};                                                           \
	_cleanup_(offcpu_options_deinit) struct offcpu_options name;                                                   \
	if (read_options(&name, name##_argv) != 0)                                                                     \
	fail_msg("%s", err.msg)

static void assert_states(const struct offcpu_filter *filter, const char *letters)
{
	assert_int_equal(filter->sleeping, strchr(letters, 'S') != NULL);
	assert_int_equal(filter->uninterruptible, strchr(letters, 'D') != NULL);
	assert_int_equal(filter->runnable, strchr(letters, 'R') != NULL);
}

static void expect_time(const char *text, uint64_t unit, uint64_t want)
{
	uint64_t ns = 1;

	if (!parse_duration(text, unit, &ns) || ns != want)
		fail_msg("'%s' gave %llu", text, (unsigned long long)ns);
}

static void test_times(void **state)
{
	expect_time("0", 0, 0);
	expect_time("0.0", 0, 0);
	expect_time("0ms", 0, 0);
	expect_time("17ns", 0, 17);
	expect_time("17us", 0, 17000);
	expect_time("17\xc2\xb5s", 0, 17000);
	expect_time("17\xce\xbcs", 0, 17000);
	expect_time("1ms", 0, 1000000);
	expect_time("1.5ms", 0, 1500000);
	expect_time("0.001us", 0, 1);
	expect_time("2s", 0, UINT64_C(2000000000));
	expect_time("2min", 0, UINT64_C(120000000000));
	expect_time("1h", 0, UINT64_C(3600000000000));
	expect_time("10", 1000000000, UINT64_C(10000000000));
	expect_time("0.25", 1000000000, 250000000);
	expect_time("3ms", 1000000000, 3000000);
	expect_time("010ns", 0, 10);
	expect_time("18446744073709551615ns", 0, UINT64_MAX);
}

static void test_what_is_no_time(void **state)
{
	static const char *const wrong[] = {
		"",
		"ms",
		"-1ms",
		"+1ms",
		" 1ms",
		"1 ms",
		"1ms ",
		"1.ms",
		".5ms",
		"1.5.5ms",
		"1d",
		"1MS",
		"1m",
		"x",
		"0x1ms",
		"1e3ms",
		"nan",
		"inf",
		"5",
		"0.5",
		"0.5ns",
		"0.0000000001s",
		"18446744073709551616ns",
		"18446744073709551615us",
		"18446744073709552s",
		"99999999999999999999999999999999s",
		"0.00000000000000000000000000000000001s",
	};
	uint64_t ns;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (parse_duration(wrong[i], 0, &ns))
			fail_msg("'%s' was taken for %llu ns", wrong[i], (unsigned long long)ns);
}

static void test_defaults(void **state)
{
	OPTIONS(o, "-p", "12");

	assert_int_equal(o.processes.len, 1);
	assert_int_equal(o.processes.data[0].pid, 12);
	assert_false(o.all);
	assert_null(o.command);
	assert_int_equal(o.duration_ns, 0);
	assert_int_equal(o.filter.min_ns, 1000000);
	assert_int_equal(o.filter.max_ns, UINT64_MAX);
	assert_states(&o.filter, "SDR");
	assert_true(o.threads && o.kernel && o.user);
	assert_false(o.children || o.wakers || o.events || o.hide_idle);
	assert_ptr_equal(o.view.format, &report_format_text);
	assert_false(o.view.report.verbose || o.view.no_demangle || o.view.naming.no_cache);
	assert_int_equal(o.source, OFFCPU_SOURCE_AUTO);
	assert_int_equal(o.view.color, COLOR_AUTO);
	assert_null(o.view.output);
}

static void test_pids(void **state)
{
	static const pid_t want[] = {1, 2, 3, 4, 5, 6, INT32_MAX};
	OPTIONS(o, "-p", "1,2", "3", "--pid=4,5", "6", "-p2147483647", "1", "-p", "2");

	assert_int_equal(o.processes.len, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < o.processes.len; i++)
		assert_int_equal(o.processes.data[i].pid, want[i]);
}

static void test_names(void **state)
{
	OPTIONS(o, "-p", "nginx,12", "--children");
	OPTIONS(p, "-a", "12x");

	assert_string_equal(o.processes.data[0].name, "nginx");
	assert_int_equal(o.processes.data[1].pid, 12);
	assert_true(o.processes.children && !o.processes.all && !o.all);
	assert_string_equal(p.processes.data[0].name, "12x");
	assert_true(p.processes.all && !p.all); /* all of that name, not all that there are */
}

static void test_all(void **state)
{
	OPTIONS(o, "-a", "--min", "0");
	OPTIONS(p, "--all");

	assert_true(o.all && p.all);
	assert_int_equal(o.processes.len, 0);
	assert_int_equal(o.filter.min_ns, 0);
}

/* Its own options are not ours, and its numbers no pids. */
static void test_command(void **state)
{
	OPTIONS(o, "-d", "1", "--", "sleep", "--json", "-p", "12");
	OPTIONS(p, "--no-children", "--", "12");

	assert_int_equal(o.processes.len, 0);
	assert_string_equal(o.command[0], "sleep");
	assert_string_equal(o.command[1], "--json");
	assert_string_equal(o.command[3], "12");
	assert_null(o.command[4]);
	assert_true(o.view.format->is_text);
	assert_true(o.children);
	assert_string_equal(p.command[0], "12");
	assert_null(p.command[1]);
	assert_int_equal(p.processes.len, 0);
	assert_false(p.children);
}

static void test_what_to_record(void **state)
{
	OPTIONS(o, "12", "-d", "1.5", "--min=10us", "--max", "2s", "--state", "D", "--children", "--no-threads",
		"--wakers", "--kernel-only", "--source", "switch", "--read-maps");
	OPTIONS(p, "12", "--duration=90ms", "--state=S,R", "--no-threads", "--threads", "--user-only", "--max", "1ms");

	assert_int_equal(o.duration_ns, 1500000000);
	assert_int_equal(o.filter.min_ns, 10000);
	assert_int_equal(o.filter.max_ns, 2000000000);
	assert_states(&o.filter, "D");
	assert_true(o.children && o.wakers && o.kernel);
	assert_false(o.threads || o.user);
	assert_int_equal(o.source, OFFCPU_SOURCE_SWITCH);
	assert_true(o.read_maps && !p.read_maps);
	assert_int_equal(p.duration_ns, 90000000);
	assert_states(&p.filter, "SR");
	assert_true(p.threads && p.user);
	assert_false(p.kernel || p.children);
	assert_int_equal(p.filter.max_ns, p.filter.min_ns);
}

static void test_sources(void **state)
{
	static const struct {
		const char *word;
		enum offcpu_source source;
	} cases[] = {
		{"auto", OFFCPU_SOURCE_AUTO},     {"sched_exit", OFFCPU_SOURCE_SCHED_EXIT},
		{"kprobe", OFFCPU_SOURCE_KPROBE}, {"switch", OFFCPU_SOURCE_SWITCH},
		{"proc", OFFCPU_SOURCE_PROC},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		OPTIONS(o, "-a", "--source", (char *)cases[i].word);

		assert_int_equal(o.source, cases[i].source);
	}
}

static void test_states(void **state)
{
	OPTIONS(o, "-a", "--state", "SDR");
	OPTIONS(p, "-a", "--state", "R", "--state", "D");

	assert_states(&o.filter, "SDR");
	assert_states(&p.filter, "DR");
}

static void test_output(void **state)
{
	OPTIONS(o, "-a", "--json", "-o", "file", "--hide-idle", "--events=waits", "--color", "always", "--no-demangle",
		"-v", "--no-cache", "--debuginfod=http://localhost", "--debuginfod-timeout", "7");
	OPTIONS(p, "-a", "--folded", "--no-color", "--output=-");
	OPTIONS(q, "-a", "--events", "--threads");
	OPTIONS(r, "-a", "--events=waits", "--top", "3", "--no-threads");

	assert_ptr_equal(o.view.format, &report_format_json);
	assert_true(o.hide_idle && o.events && o.view.no_demangle && o.view.report.verbose);
	assert_string_equal(o.view.output, "file");
	assert_string_equal(o.events_path, "waits");
	assert_int_equal(o.view.color, COLOR_ALWAYS);
	assert_true(o.view.naming.no_cache && o.view.naming.use_debuginfod);
	assert_string_equal(o.view.naming.urls, "http://localhost");
	assert_int_equal(o.view.naming.timeout, 7);
	assert_ptr_equal(p.view.format, &report_format_folded);
	assert_int_equal(p.view.color, COLOR_NEVER);
	assert_string_equal(p.view.output, "-");
	assert_true(q.events);
	assert_null(q.events_path);
	assert_int_equal(r.top, 3);
	assert_false(r.threads);
}

static void expect_wrong(const char *words, char **argv)
{
	_cleanup_(offcpu_options_deinit) struct offcpu_options o;

	if (read_options(&o, argv) != -EINVAL)
		fail_msg("taken, though: %s", words);
	assert_int_equal(err.code, EINVAL);
	if (!words[0])
		assert_string_equal(err.msg, ""); /* getopt has said it */
	if (!strstr(err.msg, words))
		fail_msg("no '%s' in '%s'", words, err.msg);
}

#define WRONG(words, ...) expect_wrong((words), (char *[]){"offcpu", __VA_ARGS__, NULL})

static void test_wrong_values(void **state)
{
	WRONG("'0' is not a process or thread id", "-p", "0");
	WRONG("'-3' is neither a process id nor a name", "-p", "-3");
	WRONG("'' is neither a process id nor a name", "-p", "1,,2");
	WRONG("'' is neither", "-p", "1,");
	WRONG("'' is neither", "-p", "");
	WRONG("'2147483648' is not a process or thread id", "-p", "2147483648");
	WRONG("give either -p PROCESS, -a or -- COMMAND", "-a", "-p", "12");
	WRONG("'11111111111111111111111111' is not", "-p", "11111111111111111111111111");
	WRONG("--duration takes a time", "-a", "-d", "soon");
	WRONG("--duration must be more than 0", "-a", "-d", "0");
	WRONG("--min takes a time such as 10us, 1.5ms or 2s, not '5'", "-a", "--min", "5");
	WRONG("--max takes a time", "-a", "--max", "");
	WRONG("--state takes some of S, D and R, not 'X'", "-a", "--state", "X");
	WRONG("--state takes", "-a", "--state", "");
	WRONG("--state takes", "-a", "--state", "S,");
	WRONG("--state takes", "-a", "--state", ",S");
	WRONG("--state takes", "-a", "--state", "S,,D");
	WRONG("--state takes", "-a", "--state", "s");
	WRONG("--events needs BPF: not with --source=proc", "-a", "--source=proc", "--events");
	WRONG("--wakers needs BPF: not with --source=proc", "-a", "--source=proc", "--wakers");
	WRONG("--source takes auto, sched_exit, kprobe, switch or proc, not 'magic'", "-a", "--source", "magic");
	WRONG("--color takes", "-a", "--color", "red");
	WRONG("--debuginfod-timeout takes", "-a", "--debuginfod-timeout", "0");
}

static void test_what_excludes_each_other(void **state)
{
	WRONG("which process?", "-v");
	WRONG("which process?", "--");
	WRONG("give either -p PROCESS, -a or -- COMMAND", "-a", "12");
	WRONG("give either -p PROCESS, -a or -- COMMAND", "-a", "--", "true");
	WRONG("give either -p PROCESS, -a or -- COMMAND", "-p", "12", "--", "true");
	WRONG("--max is less than --min", "-a", "--max", "1us");
	WRONG("leave no stack", "-a", "--kernel-only", "--user-only");
	WRONG("either --json or --folded", "-a", "--json", "--folded");
	WRONG("either --folded or --json", "-a", "--folded", "--json");
	WRONG("--events=FILE", "-a", "--json", "--events");
	WRONG("--events=FILE", "-a", "--folded", "--events");
	WRONG("--hide-idle is for the report", "-a", "--hide-idle", "--events");
	WRONG("--top is for the report", "-a", "--top", "3", "--events");
	WRONG("--no-threads is for the report", "-a", "--no-threads", "--events");
	WRONG("--top is for the text: --json has all", "-a", "--top", "3", "--json");
	WRONG("--top is for the text: --folded has all", "-a", "--top", "3", "--folded", "--events=waits");
}

/* getopt says on standard error what was wrong. */
static void test_unknown_options(void **state)
{
	opterr = 0;
	WRONG("", "-a", "--frobnicate");
	WRONG("", "-a", "-r");
	WRONG("", "-a", "--min");
	WRONG("", "-a", "--json=1");
	opterr = 1;
}

static void test_help(void **state)
{
	_cleanup_(offcpu_options_deinit) struct offcpu_options o;

	assert_int_equal(READ(&o, "-h"), 1);
	assert_int_equal(READ(&o, "--help", "--frobnicate"), 1);
	assert_non_null(strstr(offcpu_help, "PROCESS was not there"));
	for (const char *line = offcpu_help; *line; line += strcspn(line, "\n") + 1)
		if (strcspn(line, "\n") > 120)
			fail_msg("too long: %.*s", (int)strcspn(line, "\n"), line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_what_is_no_time),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_pids),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_what_to_record),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_wrong_values),
		cmocka_unit_test(test_what_excludes_each_other),
		cmocka_unit_test(test_unknown_options),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests_name("offcpu_options", tests, NULL, NULL);
}
