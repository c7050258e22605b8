/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_REPORT_FIXTURE_H
#define STAKEOUT_TESTS_REPORT_FIXTURE_H

#include "cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "full_once.h"
#include "report/report.h"
#include "sample.h"

/* What the tests of the reports share. REPORT names the function under test, before this is included. */

struct fixture {
	struct snapshot *snap;
	struct trace trace;
	char *text; /* the last report */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->snap = sample_snapshot();
	sample_trace(&f->trace, f->snap);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	trace_deinit(&f->trace);
	snapshot_destroy(f->snap);
	free(f->text);
	free(f);
	return 0;
}

static const char *report(struct fixture *f, const struct trace *trace, const struct report_options *options)
{
	size_t len;
	FILE *out;

	free(f->text);
	f->text = NULL;
	out = open_memstream(&f->text, &len);
	assert_non_null(out);
	assert_int_equal(REPORT(trace, options, out), 0);
	fclose(out);
	return f->text;
}

static void expect(void **state, struct report_options options, const char *want)
{
	struct fixture *f = *state;
	const char *text = report(f, &f->trace, &options);

	if (!strstr(text, want))
		fail_msg("no %s in %s", want, text);
}

static void expect_not(void **state, struct report_options options, const char *unwanted)
{
	struct fixture *f = *state;
	const char *text = report(f, &f->trace, &options);

	if (strstr(text, unwanted))
		fail_msg("%s in %s", unwanted, text);
}

#endif
