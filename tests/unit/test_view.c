/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <errno.h>

#include "cmd/view.h"
#include "model/snapfile.h"
#include "sample.h"

static struct view_options take_option(int opt, const char *value)
{
	struct view view;
	struct err err = {0};

	view_init(&view);
	assert_int_equal(view_option(&view.options, opt, value, &err), 1);
	assert_int_equal(err.code, 0);
	return view.options;
}

static void test_options(void **state)
{
	struct view view;

	view_init(&view);
	assert_true(view.options.report.group && view.options.report.kernel);
	assert_false(view.options.report.registers || view.options.report.verbose);
	assert_ptr_equal(view.options.format, &report_format_text);
	assert_int_equal(view.options.color, COLOR_AUTO);
	assert_int_equal(view.options.depth, 0);

	assert_true(take_option('r', NULL).report.registers);
	assert_true(take_option(VIEW_SHOW_SP, NULL).report.show_sp);
	assert_true(take_option(VIEW_KERNEL, NULL).report.kernel);
	assert_false(take_option(VIEW_NO_KERNEL, NULL).report.kernel);
	assert_int_equal(take_option(VIEW_DEPTH, "1").depth, 1);
	assert_int_equal(take_option(VIEW_DEPTH, "64k").depth, 65536);
	assert_false(take_option(VIEW_NO_GROUP, NULL).report.group);
	assert_ptr_equal(take_option(VIEW_JSON, NULL).format, &report_format_json);
	assert_int_equal(take_option(VIEW_COLOR, "auto").color, COLOR_AUTO);
	assert_int_equal(take_option(VIEW_COLOR, "always").color, COLOR_ALWAYS);
	assert_int_equal(take_option(VIEW_COLOR, "never").color, COLOR_NEVER);
	assert_int_equal(take_option(VIEW_NO_COLOR, NULL).color, COLOR_NEVER);
	assert_true(take_option(VIEW_IGNORE_DELETED, NULL).ignore_deleted);
	assert_string_equal(take_option('o', "file").output, "file");
	assert_true(take_option('v', NULL).report.verbose);
	assert_true(take_option(VIEW_NO_ADDRESSES, NULL).report.no_addresses);
	assert_true(take_option(VIEW_LONG, NULL).long_lines);
}

static void expect_wrong(int opt, const char *value, const char *option)
{
	struct view view;
	struct err err = {0};

	view_init(&view);
	assert_int_equal(view_option(&view.options, opt, value, &err), -EINVAL);
	assert_int_equal(err.code, EINVAL);
	assert_non_null(strstr(err.msg, option));
	assert_non_null(strstr(err.msg, value));
	assert_int_equal(view.options.depth, 0);
	assert_int_equal(view.options.color, COLOR_AUTO);
}

static void test_wrong_values(void **state)
{
	expect_wrong(VIEW_DEPTH, "0", "--depth");
	expect_wrong(VIEW_DEPTH, "-1", "--depth");
	expect_wrong(VIEW_DEPTH, "all", "--depth");
	expect_wrong(VIEW_DEPTH, "4g", "--depth"); /* it would be 0 in 32 bits */
	expect_wrong(VIEW_COLOR, "yes", "--color");
	expect_wrong(VIEW_COLOR, "", "--color");
}

static const char *value_for(int opt)
{
	return opt == VIEW_COLOR ? "auto" : opt == VIEW_STATE ? "R" : "1";
}

/* Every long option is one that is taken, and no other value is. */
static void test_all_options_are_taken(void **state)
{
	static const struct option longs[] = {VIEW_LONG_OPTIONS};
	struct view view;

	view_init(&view);
	for (size_t i = 0; i < sizeof(longs) / sizeof(longs[0]); i++) {
		const char *value = longs[i].has_arg ? value_for(longs[i].val) : NULL;

		if (longs[i].val != 'h')
			assert_int_equal(view_option(&view.options, longs[i].val, value, NULL), 1);
	}
	view_deinit(&view);
	for (int opt = VIEW_OPTION_FIRST + 1; opt < VIEW_OPTION_END; opt++)
		assert_int_equal(view_option(&view.options, opt, value_for(opt), NULL), 1);
	assert_int_equal(view_option(&view.options, VIEW_OPTION_FIRST, NULL, NULL), 0);
	assert_int_equal(view_option(&view.options, VIEW_OPTION_END, NULL, NULL), 0);
	assert_int_equal(view_option(&view.options, 'h', NULL, NULL), 0); /* the command's own */
	assert_int_equal(view_option(&view.options, '?', NULL, NULL), 0);
	assert_int_equal(view_option(&view.options, 1, NULL, NULL), 0);
	view_deinit(&view);
}

struct fixture {
	struct scratch scratch;
	struct view view;
	char output[128];
	struct err err;
};

static struct fixture start(void)
{
	struct fixture f = {0};

	scratch_init(&f.scratch);
	view_init(&f.view);
	snprintf(f.output, sizeof(f.output), "%s/out", f.scratch.dir);
	return f;
}

static int show(struct fixture *f)
{
	const struct tracing_options options = {0};
	struct snapshot *snap = sample_snapshot();
	struct tracing *tracing = NULL;
	int rc;

	snap->replayed = true;
	f->view.options.output = f->output;
	assert_int_equal(tracing_replay(snap, &options, 0, NULL, &tracing), 0);
	rc = view_show(&f->view, tracing, &f->err);
	return rc < 0 ? rc : view_finish(&f->view, &f->err);
}

static char *finish(struct fixture *f)
{
	char *text;
	size_t len;

	view_deinit(&f->view);
	text = scratch_read(&f->scratch, "out", &len);
	text[len] = '\0';
	scratch_deinit(&f->scratch);
	return text;
}

static void test_documents(void **state)
{
	struct fixture f = start();
	char *text, *second;

	assert_int_equal(show(&f), 0);
	assert_int_equal(show(&f), 0);
	assert_int_equal(f.view.documents, 2);
	assert_true(f.view.incomplete);
	text = finish(&f);
	assert_int_equal(strncmp(text, "stakeout: server (pid 4711, replayed)", 37), 0);
	second = strstr(text + 1, "stakeout: server");
	assert_non_null(second);
	assert_int_equal(strncmp(second - 2, "\n\n", 2), 0);
	assert_null(strstr(text, "\033")); /* a file is no terminal */
	free(text);
}

static void test_json_documents(void **state)
{
	struct fixture f = start();
	size_t lines = 0;
	char *text;

	f.view.options.format = &report_format_json;
	assert_int_equal(show(&f), 0);
	assert_int_equal(show(&f), 0);
	text = finish(&f);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
		assert_int_equal(line[0], '{');
		assert_int_equal(line[strlen(line) - 1], '}');
	}
	assert_int_equal(lines, 2);
	free(text);
}

static void test_colors(void **state)
{
	struct fixture f = start();
	char *text;

	f.view.options.color = COLOR_ALWAYS;
	assert_int_equal(show(&f), 0);
	text = finish(&f);
	assert_non_null(strstr(text, "\033[0m"));
	free(text);
}

static void test_save(void **state)
{
	struct fixture f = start();
	struct snapshot *read = NULL;
	char path[128];
	FILE *in;

	snprintf(path, sizeof(path), "%s/saved", f.scratch.dir);
	f.view.options.save = path;
	assert_int_equal(show(&f), 0);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_int_equal(snapfile_read(in, NULL, &read), 0);
	fclose(in);
	assert_int_equal(read->pid, SAMPLE_PID);
	assert_int_equal(read->threads.len, SAMPLE_THREADS);
	snapshot_destroy(read);

	f.view.options.save = "/nonexistent/saved";
	assert_int_equal(show(&f), -ENOENT);
	assert_non_null(strstr(f.err.msg, "/nonexistent/saved"));
	assert_int_equal(f.view.documents, 1);
	free(finish(&f));
}

static void test_output_that_fails(void **state)
{
	struct fixture f = start();

	scratch_text(&f.scratch, "out", "");
	strcpy(f.output, "/nonexistent/out");
	assert_int_equal(show(&f), -ENOENT);
	assert_non_null(strstr(f.err.msg, "/nonexistent/out"));
	strcpy(f.output, "/dev/full");
	assert_int_equal(show(&f), -ENOSPC);
	assert_non_null(strstr(f.err.msg, "writing the output"));
	assert_int_equal(f.view.documents, 0);
	free(finish(&f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_wrong_values),
		cmocka_unit_test(test_all_options_are_taken),
		cmocka_unit_test(test_documents),
		cmocka_unit_test(test_json_documents),
		cmocka_unit_test(test_colors),
		cmocka_unit_test(test_save),
		cmocka_unit_test(test_output_that_fails),
	};

	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
