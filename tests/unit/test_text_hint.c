/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>

#include "report/text_hint.h"
#include "sample.h"

/* A process that executes `exe`, with one thread that has the stack. */
struct fixture {
	struct snapshot snap;
	struct trace trace;
};

static void start(struct fixture *f, pid_t pid, const char *exe, const struct stack *stack)
{
	*f = (struct fixture){.snap = {.pid = pid, .exe = exe, .comm = "main"}};
	f->trace.snap = &f->snap;
	assert_true(vec_push(&f->trace.threads, (struct trace_thread){.user = stack}));
}

static void expect(const struct trace *const *traces, size_t n, const char *want)
{
	char *got = NULL;
	size_t len;
	const struct text text = {.out = open_memstream(&got, &len)};

	text_hints(&text, traces, n);
	fclose(text.out);
	assert_string_equal(got, want);
	free(got);
}

static void expect_one(const char *exe, const struct stack *stack, const char *want)
{
	struct fixture f;

	start(&f, 77, exe, stack);
	expect(&(const struct trace *){&f.trace}, 1, want);
	trace_deinit(&f.trace);
}

static void test_advice(void **state)
{
	const struct stack made = SAMPLE_STACK({.address = 16}, {.symbol = "main", .module = &sample_exe});
	const struct stack named = SAMPLE_STACK({.symbol = "lambda", .symbol_source = SYMBOL_PERF_MAP},
						{.symbol = "main", .module = &sample_exe});
	const struct stack python = SAMPLE_STACK({.symbol = "_PyEval_EvalFrameDefault", .module = &sample_exe});

	const struct stack read = SAMPLE_STACK({.symbol = "Handler.get", .kind = FRAME_KIND_PYTHON},
					       {.symbol = "_PyEval_EvalFrame", .module = &sample_exe});

	expect_one("/usr/bin/java", &made, "\ncode made by Java has no names: `jcmd 77 Compiler.perfmap` (17 and later) writes them, "
					   "then look again\n");
	expect_one("/usr/bin/node", &made, "\ncode made by Node.js has no names: start it with --perf-basic-prof "
					   "--interpreted-frames-native-stack\n");
	expect_one("/usr/bin/python3.12", &python, "\nfunctions of Python have no names: start it with -X perf (3.12 and later)\n");
	expect_one(NULL, &made, "\ncode made at run time has no names: see CODE MADE AT RUN TIME in stakeout(1)\n");
	expect_one("/usr/bin/java", &named, ""); /* somebody has told the name */
	expect_one("/usr/bin/server", &python, "");
	expect_one("/usr/bin/python3.11", &read, ""); /* its frames were read */
	expect_one("/usr/bin/java", NULL, "");
}

static void test_once(void **state)
{
	const struct stack made = SAMPLE_STACK({.address = 16}, {.symbol = "main", .module = &sample_exe});
	struct fixture a, b;
	const struct trace *both[] = {&a.trace, &b.trace};

	start(&a, 77, "/usr/bin/node", &made);
	start(&b, 78, "/usr/bin/node", &made);
	expect(both, 2, "\ncode made by Node.js has no names: start it with --perf-basic-prof --interpreted-frames-native-stack\n");
	trace_deinit(&a.trace);
	trace_deinit(&b.trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_advice),
		cmocka_unit_test(test_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
