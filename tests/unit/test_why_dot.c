/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

struct world {
	struct snapshot snap;
	struct snap_thread threads[3];
	struct trace_thread traced[3];
	struct trace trace;
	char *text;
};

static void init(struct world *w)
{
	*w = (struct world){.snap = {.pid = 10, .comm = "x"}, .trace = {.snap = &w->snap}};
	for (int i = 0; i < 3; i++) {
		w->threads[i] = (struct snap_thread){.tid = 10 + i, .state = 'S', .name = "thread"};
		w->traced[i] = (struct trace_thread){.snap = &w->snap, .thread = &w->threads[i]};
	}
	w->trace.threads.data = w->traced;
	w->trace.threads.len = 3;
	w->traced[1].wait = (struct wait){.kind = WAIT_MUTEX, .address = 0x1234, .holder = HOLDER_THREAD, .owner = 10, .owner_pid = 10, .certain = true};
}

static const char *report(struct world *w, const struct deadlocks *deadlocks)
{
	const struct trace *trace = &w->trace;
	const struct report_options options = {0};
	size_t len;
	FILE *out;

	free(w->text);
	w->text = NULL;
	out = open_memstream(&w->text, &len);
	assert_non_null(out);
	assert_int_equal(report_why_dot(&trace, 1, deadlocks, &options, out), 0);
	fclose(out);
	return w->text;
}

static void expect(struct world *w, const struct deadlocks *deadlocks, const char *part)
{
	if (!strstr(report(w, deadlocks), part)) {
		fprintf(stderr, "%s\nis not in\n%s", part, w->text);
		fail();
	}
}

/* What a name has is neither an escape nor an entity, and ends no string. */
static void test_quotes(void **state)
{
	const struct deadlocks none = {0};
	struct world w;

	init(&w);
	strcpy(w.threads[0].name, "\"];\\N&lt;\n\\l");
	expect(&w, &none, "[label=\"tid 10 \\\"];\\\\N&amp;lt;\\\\x0a\\\\l\\l");
	free(w.text);
}

static void test_edges(void **state)
{
	const struct trace_thread *members[1];
	struct deadlock deadlock = {.data = members, .len = 1};
	const struct deadlocks none = {0}, one = {.data = &deadlock, .len = 1};
	struct world w;

	init(&w);
	members[0] = &w.traced[1];
	expect(&w, &none, "[label=\"mutex 0x1234\"];");
	w.traced[1].wait.certain = false;
	expect(&w, &none, "[label=\"mutex 0x1234\", style=dashed];");
	w.traced[1].wait.timed = true;
	expect(&w, &none, "[label=\"mutex 0x1234\\lnot for ever\", style=dashed];");
	w.traced[1].wait = (struct wait){.kind = WAIT_MUTEX, .address = 0x1234, .holder = HOLDER_THREAD, .owner = 11, .owner_pid = 10, .certain = true};
	expect(&w, &one, "n0 -> n0 [label=\"mutex 0x1234\", color=\"#c00000\"");
	w.traced[1].wait.owner_pid = 77;
	w.traced[1].wait.owner_comm = "y";
	w.traced[1].wait.shared = true;
	expect(&w, &none, "label=\"tid 11\\lpid 77 (y)\\lnot looked at\\l\"");
	w.traced[1].wait.holder = HOLDER_READERS;
	expect(&w, &none, "label=\"readers\\lnot recorded\\l\"");
	w.traced[1].wait.holder = HOLDER_ENDED;
	expect(&w, &none, "label=\"tid 11\\lhas ended\\l\"");
	free(w.text);
}

/* Threads that nobody waits for are one node, if they do the same. */
static void test_groups(void **state)
{
	const struct deadlocks none = {0};
	struct world w;

	init(&w);
	w.traced[2].wait = w.traced[1].wait;
	expect(&w, &none, "[label=\"2 threads: thread\\ltid 11, 12\\l\"");
	assert_null(strstr(w.text, "n2"));
	strcpy(w.threads[2].name, "other");
	expect(&w, &none, "[label=\"2 threads\\ltid 11 thread, 12 other\\l\"");
	free(w.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quotes),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
