/* SPDX-License-Identifier: MIT */
#include <getopt.h>

#include "cmd/capture_args.h"
#include "cmd/cmd.h"
#include "cmd/interrupt.h"
#include "cmd/render.h"
#include "cmd/view.h"

enum { WHY_DOT = 5000 }; /* beyond the options of others */

static const char help[] =
	"Usage: stakeout why [OPTION…] PROCESS…\n"
	"\n"
	"Says what each thread waits for, who holds it and what that one waits for, and which threads wait\n"
	"for each other for ever. Several processes are looked at in one instant. As in a snapshot, no\n"
	"thread is stopped.\n"
	"PROCESS is a pid or a name; several may be separated by commas.\n"
	"\n"
	"Which processes:\n"
	"  -p, --pid PROCESS      the same as PROCESS\n"
	CAPTURE_WHICH_HELP
	"\n"
	"Capture:\n"
	"      --stop MODE        auto, hold or none: as for a snapshot\n"
	CAPTURE_HOW_HELP
	"\n"
	"Output:\n"
	"      --json             one JSON document\n"
	"      --dot              who waits for whom, as a graph for graphviz; deadlocks are red, what is\n"
	"                         not certain is dashed\n"
	"  -o, --output FILE      write there instead of standard output; to NAME.svg a picture of the\n"
	"                         graph, which graphviz's program dot makes\n"
	"      --color WHEN       auto, always or never; NO_COLOR is honoured\n"
	"      --no-demangle      show names as the linker has them\n" NAME_HELP
	"  -v, --verbose          all frames, how they were found, and paths in full\n"
	DEBUG_HELP "  -h, --help             this text\n"
	"\n"
	"Exit status: 0 no deadlock was found, 4 one was, 3 none was but one is likely, or not everything\n"
	"could be seen, 1 nothing captured, 2 wrong usage.\n";

static const struct option long_options[] = {
	CAPTURE_LONG_OPTIONS,
	{"dot", no_argument, NULL, WHY_DOT},
	VIEW_OUTPUT_LONG_OPTIONS,
	{0},
};

static int print_help(void)
{
	fputs(help, stdout);
	return cmd_printed();
}

/* As view_option() does. */
static int choose_dot(struct view_options *view, struct err *err)
{
	int rc = view_choose_format(view, &report_format_dot, err);

	return rc < 0 ? rc : 1;
}

/* Before anything is looked at: it may be impossible. */
static int choose_picture(struct view_options *view, struct err *err)
{
	int rc;

	view->picture = render_is_wanted(view->output);
	if (!view->picture)
		return 0;
	rc = view_choose_format(view, &report_format_dot, err);
	return rc < 0 ? rc : render_check(err);
}

/* -1 to go on, else the exit code. */
static int parse_arguments(int argc, char **argv, struct capture_args *args, struct view_options *view)
{
	struct err err = {0};
	int opt, rc;

	while ((opt = getopt_long(argc, argv, CAPTURE_SHORT_OPTIONS "o:vh", long_options, NULL)) != -1) {
		if (opt == '?')
			return cmd_misused(argv[0], "");
		if (opt == 'h')
			return print_help();
		rc = opt == WHY_DOT ? choose_dot(view, &err) : view_option(view, opt, optarg, &err);
		if (rc == 0)
			rc = capture_args_option(args, opt, optarg, &err);
		if (rc < 0)
			return cmd_misused(argv[0], err.msg);
	}
	rc = capture_args_finish_waits(args, argc - optind, argv + optind, &err);
	if (rc == 0)
		rc = choose_picture(view, &err);
	if (rc < 0)
		return cmd_misused(argv[0], err.msg);
	return cmd_check_proc();
}

int cmd_why(int argc, char **argv)
{
	struct capture_args args;
	struct view view;
	int code;

	capture_args_init(&args);
	view_init(&view);
	view.options.why = true;
	code = parse_arguments(argc, argv, &args, &view.options);
	interrupt_catch();
	if (code < 0)
		code = capture_args_show(argv[0], &args, &view);
	view_deinit(&view);
	capture_args_deinit(&args);
	return code;
}
