/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text_summary.h"

/* Processes 101 on, of one thread each, captured together with one that is not told of. */
enum { MOST = 12, FIRST = 101 };

struct world {
	struct snapshot snaps[MOST];
	struct snap_thread threads[MOST];
	struct trace_thread traced[MOST];
	struct trace traces[MOST];
	const struct trace *all[MOST];
	char *text;
};

static void init(struct world *w)
{
	*w = (struct world){0};
	for (int i = 0; i < MOST; i++) {
		w->snaps[i] = (struct snapshot){.pid = FIRST + i, .comm = "worker", .capture = {.consistent = true, .instant_ns = 1, .companions = MOST}};
		w->snaps[i].threads.data = &w->threads[i];
		w->snaps[i].threads.len = 1;
		w->traces[i] = (struct trace){.snap = &w->snaps[i], .timings.total_ns = (uint64_t)i + 1};
		w->traces[i].threads.data = &w->traced[i];
		w->traces[i].threads.len = 1;
		w->all[i] = &w->traces[i];
	}
}

/* What is said of the first n, without times. */
static const char *summary(struct world *w, size_t n, bool verbose)
{
	const struct report_options options = {.verbose = verbose};
	char *end;
	size_t len;
	FILE *out;

	free(w->text);
	out = open_memstream(&w->text, &len);
	assert_non_null(out);
	text_summary(&(struct text){.out = out}, &options, w->all, n);
	fclose(out);
	for (char *times = strstr(w->text, "; set-up"); times; times = strstr(times, "; set-up")) {
		end = strchr(times, '\n');
		memmove(times, end, strlen(end) + 1);
	}
	return w->text;
}

static void test_alike(void **state)
{
	struct world w;

	init(&w);
	assert_string_equal(summary(&w, MOST, false), "stakeout: worker (12 processes: pid 101, 102, 103, 104, 105, 106, 107, 108, …): "
						      "12 threads, none stopped, consistent with each other and 1 other process\n");
	w.snaps[0].capture.companions = w.snaps[1].capture.companions = w.snaps[2].capture.companions = 2;
	assert_string_equal(summary(&w, 3, false), "stakeout: worker (3 processes: pid 101, 102, 103): 3 threads, none stopped, consistent with each other\n");
	w.snaps[0].capture.companions = w.snaps[1].capture.companions = w.snaps[2].capture.companions = 1; /* replayed twice */
	assert_string_equal(summary(&w, 3, false), "stakeout: worker (3 processes: pid 101, 102, 103): 3 threads, none stopped, consistent with each other\n");
	w.snaps[0].capture.companions = w.snaps[1].capture.companions = w.snaps[2].capture.companions = 0;
	assert_string_equal(summary(&w, 3, false), "stakeout: worker (pid 101): 1 thread, none stopped, consistent\n"
						   "stakeout: worker (pid 102): 1 thread, none stopped, consistent\n"
						   "stakeout: worker (pid 103): 1 thread, none stopped, consistent\n");
	free(w.text);
}

static void test_few_or_all(void **state)
{
	struct world w;

	init(&w);
	assert_string_equal(summary(&w, 2, false), "stakeout: worker (pid 101): 1 thread, none stopped, consistent with 12 other processes\n"
						   "stakeout: worker (pid 102): 1 thread, none stopped, consistent with 12 other processes\n");
	assert_string_equal(summary(&w, 3, true), "stakeout: worker (pid 101): 1 thread, none stopped, consistent with 12 other processes\n"
						  "stakeout: worker (pid 102): 1 thread, none stopped, consistent with 12 other processes\n"
						  "stakeout: worker (pid 103): 1 thread, none stopped, consistent with 12 other processes\n");
	free(w.text);
}

/* Of whom something else is to be said has a line. */
static void test_different(void **state)
{
	static struct snap_runtime python = {.name = "python", .version = "3.11.2"};
	struct world w;

	init(&w);
	w.snaps[0].comm = "main";
	w.snaps[2].capture.stopped_threads = 1;
	w.snaps[4].capture.consistent = false;
	w.snaps[4].capture.instant_ns = 0;
	w.snaps[6].container.id = "web";
	w.snaps[8].runtimes.data = &python;
	w.snaps[8].runtimes.len = 1;
	w.snaps[10].capture.instant_ns = 2;
	assert_string_equal(summary(&w, MOST, false), "stakeout: main (pid 101): 1 thread, none stopped, consistent with 12 other processes\n"
						      "stakeout: worker (6 processes: pid 102, 104, 106, 108, 110, 112): "
						      "6 threads, none stopped, consistent with each other and 7 other processes\n"
						      "stakeout: worker (pid 103): 1 thread, 1 stopped (longest pause 0 µs), consistent with 12 other processes\n"
						      "stakeout: worker (pid 105): 1 thread, none stopped, not consistent\n"
						      "stakeout: worker (pid 107, container web): 1 thread, none stopped, consistent with 12 other processes\n"
						      "stakeout: worker (pid 109, python 3.11.2): 1 thread, none stopped, consistent with 12 other processes\n"
						      "stakeout: worker (pid 111): 1 thread, none stopped, consistent with 12 other processes\n");
	free(w.text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_few_or_all),
		cmocka_unit_test(test_different),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
