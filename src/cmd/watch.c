/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/capture_args.h"
#include "cmd/cmd.h"
#include "cmd/interrupt.h"
#include "cmd/parse.h"
#include "cmd/view.h"
#include "cmd/watching.h"
#include "target/patience.h"

enum { DEFAULT_LOOKS = 10, MOST_LOOKS = 1000 * 1000 * 1000 };
static const uint64_t least_interval = 10 * 1000 * 1000, most_interval = UINT64_C(24) * 3600 * NS_PER_S;

static const char help[] =
	"Usage: stakeout watch [OPTION…] PROCESS…\n"
	"\n"
	"Looks at processes several times, and says which threads did not move at all, with what they wait\n"
	"for; which moved but came back to the same place; and which ran, where, and how much CPU they used:\n"
	"what is stuck, and what is only slow. After the first look only what has changed is told, in the\n"
	"end what came of it all. A deadlock is told when it is found. As in a snapshot, no thread is\n"
	"stopped. PROCESS is a pid or a name; several may be separated by commas.\n"
	"\n"
	"How often:\n"
	"  -i, --interval TIME    from one look to the next, such as 200ms; in seconds without a unit (1s)\n"
	"  -n, --looks N          how many; 0: until Ctrl-C, after which the summary comes, too (10)\n"
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
	"      --json             a JSON document for each look, and one for the summary, a line each\n"
	"  -o, --output FILE      write there instead of standard output\n"
	"      --color WHEN       auto, always or never; NO_COLOR is honoured\n"
	"      --no-demangle      show names as the linker has them\n" NAME_HELP
	"  -v, --verbose          whole stacks in the summary, and paths in full\n"
	DEBUG_HELP "  -h, --help             this text\n"
	"\n"
	"Exit status: 0 no deadlock was found, 4 one was, 3 none was but one is likely, or not everything\n"
	"could be seen, 1 nothing captured, 2 wrong usage.\n";

static const struct option long_options[] = {
	CAPTURE_LONG_OPTIONS,
	{"interval", required_argument, NULL, 'i'},
	{"looks", required_argument, NULL, 'n'},
	VIEW_OUTPUT_LONG_OPTIONS,
	{0},
};

struct timing {
	uint64_t interval_ns;
	uint32_t looks; /* 0: until somebody ends it */
};

static int print_help(void)
{
	fputs(help, stdout);
	return cmd_printed();
}

/* 1: taken, 0: not one of these, -EINVAL. */
static int take_timing(struct timing *timing, int opt, const char *value, struct err *err)
{
	uint64_t number;

	if (opt == 'i') {
		if (!parse_duration(value, NS_PER_S, &number) || number < least_interval || number > most_interval)
			return err_set(err, EINVAL, "--interval takes 10ms to 24h, not '%s'", value);
		timing->interval_ns = number;
		return 1;
	}
	if (opt == 'n') {
		if (strcmp(value, "none") == 0)
			number = 0;
		else if (!parse_size(value, 0, MOST_LOOKS, &number))
			return err_set(err, EINVAL, "--looks takes a number, 0 for no end, not '%s'", value);
		timing->looks = (uint32_t)number;
		return 1;
	}
	return 0;
}

/* -1 to go on, else the exit code. */
static int parse_arguments(int argc, char **argv, struct capture_args *args, struct view_options *view, struct timing *timing)
{
	struct err err = {0};
	int opt, rc;

	while ((opt = getopt_long(argc, argv, CAPTURE_SHORT_OPTIONS "i:n:o:vh", long_options, NULL)) != -1) {
		if (opt == '?')
			return cmd_misused(argv[0], "");
		if (opt == 'h')
			return print_help();
		rc = take_timing(timing, opt, optarg, &err);
		if (rc == 0)
			rc = view_option(view, opt, optarg, &err);
		if (rc == 0)
			rc = capture_args_option(args, opt, optarg, &err);
		if (rc < 0)
			return cmd_misused(argv[0], err.msg);
	}
	rc = capture_args_finish_waits(args, argc - optind, argv + optind, &err);
	if (rc < 0)
		return cmd_misused(argv[0], err.msg);
	return cmd_check_proc();
}

/*
 * Sleeps until that time of CLOCK_MONOTONIC; false: somebody wants it to end. Ctrl-C is waited for, so that it does not come between
 * a look at whether it came and the sleep; during a round it is caught as everywhere.
 */
static bool rest_until(uint64_t until_ns, const sigset_t *ends)
{
	sigset_t before;
	int sig = -1;

	sigprocmask(SIG_BLOCK, ends, &before);
	while (sig < 0 && !patience_is_interrupted()) {
		uint64_t now = monotonic_ns();
		struct timespec timeout = ns_to_timespec(until_ns > now ? until_ns - now : 0);

		sig = sigtimedwait(ends, NULL, &timeout);
		if (sig < 0 && errno == EAGAIN)
			break;
	}
	if (sig == SIGINT) { /* what still waits for others now does so for a short while at most */
		interrupt_let_end();
		patience_hurry();
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return sig < 0 && !patience_is_interrupted();
}

/* How many intervals are over since the first look. */
static uint64_t turns_passed(const struct watch_log *watch)
{
	return (monotonic_ns() - watch->begun_ns) / watch->interval_ns;
}

/*
 * Looks come at multiples of the interval after the first, however long each takes. Those whose time is over before they can begin, since
 * the one before took so long or we got no CPU, are left out, and counted. False: somebody wants it to end.
 */
static bool await_turn(struct watch_log *watch, uint64_t *turn, const sigset_t *ends)
{
	uint64_t next = *turn + 1, passed = turns_passed(watch), chosen = passed >= next ? passed + 1 : next;

	if (!rest_until(watch->begun_ns + chosen * watch->interval_ns, ends))
		return false;
	passed = turns_passed(watch);
	*turn = passed > chosen ? passed : chosen;
	watch->skipped_now = (uint32_t)(*turn - next);
	watch->skipped += watch->skipped_now;
	return true;
}

static int watch_rounds(struct watching *w, const sigset_t *ends, struct err *err)
{
	struct watch_log *watch = &w->watch;
	uint64_t turn = 0;
	int rc;

	for (;;) {
		rc = watching_look(w, err);
		if (rc < 0 || !w->ids.len || (watch->wanted && watch->rounds >= watch->wanted))
			return rc;
		if (!await_turn(watch, &turn, ends)) {
			watch->interrupted = true;
			return 0;
		}
	}
}

static int run(struct watching *w, struct err *err)
{
	sigset_t ends, later, before;
	unsigned missing = 0;
	int rc;

	sigemptyset(&later);
	sigaddset(&later, SIGTERM);
	sigaddset(&later, SIGHUP); /* the terminal is closed: a file may still be written */
	ends = later;
	sigaddset(&ends, SIGINT);
	rc = watching_find(w, &missing, err);
	if (rc < 0 || !w->ids.len)
		return rc < 0 ? rc : -ENODATA;
	sigprocmask(SIG_BLOCK, &later, &before);
	rc = watch_rounds(w, &ends, err);
	sigaddset(&before, SIGHUP); /* a terminal that is closed sends more than one signal */
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		rc = watching_sum_up(w, err);
	if (rc < 0)
		return rc;
	if (w->view->deadlock)
		return EXIT_DEADLOCK;
	return missing || w->watch.failed || w->view->incomplete ? EXIT_INCOMPLETE : EXIT_COMPLETE;
}

int cmd_watch(int argc, char **argv)
{
	struct timing timing = {.interval_ns = NS_PER_S, .looks = DEFAULT_LOOKS};
	struct capture_args args;
	struct watching watching;
	struct view view;
	struct err err = {0};
	int code;

	capture_args_init(&args);
	view_init(&view);
	code = parse_arguments(argc, argv, &args, &view.options, &timing);
	interrupt_catch();
	if (code < 0) {
		code = watching_init(&watching, &args, &view) ? 0 : err_set(&err, ENOMEM, "out of memory");
		watching.watch.interval_ns = timing.interval_ns;
		watching.watch.wanted = timing.looks;
		if (code == 0)
			code = run(&watching, &err);
		if (code == -E2BIG)
			code = cmd_misused(argv[0], err.msg);
		else if (code < 0 && err.code)
			cmd_complain(err.msg);
		code = code < 0 ? EXIT_NOTHING : code;
		watching_deinit(&watching);
	}
	view_deinit(&view);
	capture_args_deinit(&args);
	return code;
}
