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

static const char help[] =
	"Usage: stakeout replay [OPTION…] FILE\n"
	"\n"
	"Walks, names and shows a snapshot that `stakeout --save FILE PID` wrote. The programs and\n"
	"libraries are looked up on this machine and must have the recorded build-ids. FILE may be - for\n"
	"standard input.\n";

static int replay(const char *path, struct view *view, struct err *err)
{
	_cleanup_(cleanup_tracing) struct tracing *tracing = NULL;
	const struct tracing_options options = {
		.ignore_deleted = view->options.ignore_deleted,
		.no_runtimes = view->options.no_runtimes,
		.locals = view->options.locals,
		.depth = view->options.depth,
	};
	struct snapshot *snap = NULL;
	bool from_stdin = strcmp(path, "-") == 0;
	FILE *f = from_stdin ? stdin : fopen(path, "re");
	uint64_t started = monotonic_ns();
	int rc;

	if (!f)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	rc = snapfile_read(f, err, &snap);
	if (!from_stdin)
		fclose(f);
	if (rc < 0)
		return err_prefix(err, "%s", path);
	rc = tracing_replay(snap, &options, started, err, &tracing);
	if (rc == 0)
		rc = view_show(view, steal_ptr(tracing), err);
	return rc < 0 ? rc : view_finish(view, err);
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
