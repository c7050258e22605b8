/* SPDX-License-Identifier: MIT */
#include <getopt.h>

#include "cmd/capture_args.h"
#include "cmd/cmd.h"
#include "cmd/interrupt.h"
#include "cmd/view.h"

enum {
	OPT_SAVE = 1,
	OPT_NO_WAITS,
	OPT_VERSION,
};

static const char help[] =
	"Usage: stakeout [snapshot] [OPTION…] PROCESS…\n"
	"       stakeout [snapshot] [OPTION…] -t TID…\n"
	"\n"
	"Shows what every thread of running processes is doing and what it waits for. No thread is stopped:\n"
	"those that run get no CPU for some microseconds. PROCESS is a pid or a name; several may be\n"
	"separated by commas.\n"
	"\n"
	"Which processes:\n"
	"  -p, --pid PROCESS      the same as PROCESS\n"
	"  -t, --tid TID          only this thread; its process need not be given\n"
	CAPTURE_WHICH_HELP
	"\n"
	"Capture:\n"
	"      --stop MODE        auto: stop nobody, and take the CPUs of what runs for microseconds (the\n"
	"                         default); hold: stop what runs, by ptrace; all: stop the whole process\n"
	"                         once; none: neither, running threads are reported as not captured\n"
	CAPTURE_HOW_HELP
	"      --no-waits         neither find out nor say what threads wait for\n"
	"      --ptrace           unwind while stopped, reading word by word (slow, for comparison)\n"
	"      --save FILE        also write the raw snapshot there, for `stakeout replay`\n"
	"      --version          version and built-in features\n";

static const char epilogue[] =
	"\n"
	"Exit status: 0 every stack is complete, 3 some are not (the output says why), 1 nothing captured,\n"
	"2 wrong usage.\n";

static const struct option long_options[] = {
	VIEW_LONG_OPTIONS,
	CAPTURE_LONG_OPTIONS,
	{"tid", required_argument, NULL, 't'},
	{"ptrace", no_argument, NULL, CAPTURE_PTRACE},
	{"save", required_argument, NULL, OPT_SAVE},
	{"no-waits", no_argument, NULL, OPT_NO_WAITS},
	{"version", no_argument, NULL, OPT_VERSION},
	{0},
};

static int print_help(void)
{
	printf("%s\n%s%s", help, view_help, epilogue);
	return cmd_printed();
}

/* -1 to go on, else the exit code. */
static int parse_arguments(int argc, char **argv, struct capture_args *args, struct view_options *view)
{
	struct err err = {0};
	int opt, rc;

	while ((opt = getopt_long(argc, argv, VIEW_SHORT_OPTIONS CAPTURE_SHORT_OPTIONS "t:", long_options, NULL)) != -1) {
		if (opt == '?')
			return cmd_misused(argv[0], "");
		if (opt == 'h')
			return print_help();
		if (opt == OPT_VERSION)
			return cmd_version(1, argv);
		if (opt == OPT_SAVE) {
			view->save = optarg;
			continue;
		}
		if (opt == OPT_NO_WAITS) {
			args->capture.no_waits = true;
			continue;
		}
		rc = view_option(view, opt, optarg, &err);
		if (rc == 0)
			rc = capture_args_option(args, opt, optarg, &err);
		if (rc < 0)
			return cmd_misused(argv[0], err.msg);
	}
	rc = view_check(view, &err);
	if (rc == 0)
		rc = capture_args_finish(args, argc - optind, argv + optind, &err);
	if (rc < 0)
		return cmd_misused(argv[0], err.msg);
	if (args->ptrace)
		args->capture.stop = STOP_ALL;
	args->capture.kernel_stacks = view->report.kernel;
	return cmd_check_proc();
}

int cmd_snapshot(int argc, char **argv)
{
	struct capture_args args;
	struct view view;
	int code;

	capture_args_init(&args);
	view_init(&view);
	code = parse_arguments(argc, argv, &args, &view.options);
	interrupt_catch();
	if (code < 0)
		code = capture_args_show(argv[0], &args, &view);
	view_deinit(&view);
	capture_args_deinit(&args);
	return code;
}
