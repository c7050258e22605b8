/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/interrupt.h"
#include "cmd/view.h"
#include "model/snapfile.h"
#include "privilege/caller.h"

static const char help[] =
	"Usage: stakeout replay [OPTION…] FILE\n"
	"\n"
	"Walks, names and shows a snapshot that `stakeout --save FILE PID` wrote. The programs and\n"
	"libraries are looked up on this machine and must have the recorded build-ids. FILE may be - for\n"
	"standard input.\n";

static FILE *fopen_as_caller(const char *path)
{
	_cleanup_(caller_end) struct caller_scope scope = caller_begin_rights();

	return fopen(path, "re");
}

/* What is replayed. */
struct recorded {
	const char *path;
	FILE *file;
	uint64_t started_ns;
};

/* For view_show_opened(). */
static int open_recorded(void *arg, struct view *view, struct err *err)
{
	const struct recorded *recorded = arg;
	const struct tracing_options options = {
		.ignore_deleted = view->options.ignore_deleted,
		.no_runtimes = view->options.no_runtimes,
		.locals = view->options.locals,
		.depth = view->options.depth,
	};
	struct tracing *tracing = NULL;
	struct snapshot *snap = NULL;
	int rc = snapfile_read(recorded->file, err, &snap);

	if (rc < 0)
		return err_prefix(err, "%s", recorded->path);
	rc = tracing_replay(snap, &options, recorded->started_ns, err, &tracing);
	return rc < 0 ? rc : view_hold(view, tracing, err);
}

static int replay(const char *path, struct view *view, struct err *err)
{
	struct recorded recorded = {.path = path, .started_ns = monotonic_ns()};
	bool from_stdin = strcmp(path, "-") == 0;
	int rc;

	recorded.file = from_stdin ? stdin : fopen_as_caller(path);
	if (!recorded.file)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	rc = view_show_opened(view, fileno(recorded.file), open_recorded, &recorded, err);
	if (!from_stdin)
		fclose(recorded.file);
	return rc;
}

int cmd_replay(int argc, char **argv)
{
	static const struct option long_options[] = {VIEW_LONG_OPTIONS, {0}};
	struct err err = {0};
	struct view view;
	int opt, rc;

	view_init(&view);
	while ((opt = getopt_long(argc, argv, VIEW_SHORT_OPTIONS, long_options, NULL)) != -1) {
		if (opt == '?')
			return cmd_misused(argv[0], "");
		if (opt == 'h') {
			printf("%s\n%s", help, view_help);
			return cmd_printed();
		}
		if (view_option(&view.options, opt, optarg, &err) < 0)
			return cmd_misused(argv[0], err.msg);
	}
	if (view_check(&view.options, &err) < 0)
		return cmd_misused(argv[0], err.msg);
	if (argc - optind != 1)
		return cmd_misused(argv[0], "give one file");
	rc = cmd_check_proc();
	if (rc >= 0)
		return rc;
	interrupt_catch();
	rc = replay(argv[optind], &view, &err);
	view_deinit(&view);
	if (rc < 0) {
		cmd_complain(err.msg);
		return EXIT_NOTHING;
	}
	return view.incomplete ? EXIT_INCOMPLETE : EXIT_COMPLETE;
}
