/* SPDX-License-Identifier: MIT */
#include "cmd/offcpu_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/parse.h"

enum {
	OPT_PROCESS = 1, /* what getopt gives for an argument that is no option */
	OPT_MIN = 256,
	OPT_MAX,
	OPT_STATE,
	OPT_CHILDREN,
	OPT_NO_CHILDREN,
	OPT_THREADS,
	OPT_NO_THREADS,
	OPT_WAKERS,
	OPT_KERNEL_ONLY,
	OPT_USER_ONLY,
	OPT_FOLDED,
	OPT_EVENTS,
	OPT_HIDE_IDLE,
	OPT_TOP,
	OPT_SOURCE,
	OPT_READ_MAPS,
};

static const uint64_t millisecond = 1000000, second = 1000000000;

const char offcpu_help[] =
	"Usage: stakeout offcpu [OPTION…] -p PROCESS…\n"
	"       stakeout offcpu [OPTION…] -a\n"
	"       stakeout offcpu [OPTION…] -- COMMAND [ARGUMENT…]\n"
	"\n"
	"Records where threads wait: for how long, in which state, and with which kernel and user stacks.\n"
	"Ends after --duration, with COMMAND or the last process, or with Ctrl-C. A TIME has a suffix: ns,\n"
	"us, ms, s, min or h.\n"
	"\n"
	"What to record:\n"
	"  -p, --pid PROCESS…     a pid or a name; may be repeated, and several may be separated by commas\n"
	"  -a, --all              all processes; with a name, all that have it\n"
	"  -d, --duration TIME    for how long; a bare number is in seconds\n"
	"      --min TIME         only waits at least as long (1ms)\n"
	"      --max TIME         only waits at most as long\n"
	"      --state LETTERS    only waits in these states: S sleeping, D uninterruptible, R ready but\n"
	"                         without a CPU (S,D,R)\n"
	"      --children         also processes that these have started or will; the default with COMMAND\n"
	"      --no-children      not those\n"
	"      --threads          each thread by itself (the default)\n"
	"      --no-threads       all threads of all processes of a program together\n"
	"      --wakers           also who ended the wait, and its stacks\n"
	"      --kernel-only      no user stacks\n"
	"      --user-only        no kernel stacks\n"
	"      --no-runtime       only native frames: do not look for Python, Java or JavaScript\n"
	"\n"
	"Output:\n"
	"      --json             one JSON document\n"
	"      --folded           a line for each stack, for flame graphs; microseconds\n"
	"      --events[=FILE]    a line of JSON for each wait as it ends, instead of the report; with FILE\n"
	"                         there, and the report as well\n"
	"      --hide-idle        leave out where threads only wait for work: event loops, pools\n"
	"      --top N            so many threads and stacks in the text (20 and 50)\n"
	"      --raw              also the native frames that those of Python, Java or JavaScript stand for\n"
	"      --no-addresses     leave out the addresses of frames\n"
	"      --long             lines as long as they are, also on a terminal that is narrower\n"
	"  -o, --output FILE      write there instead of standard output\n"
	"      --color WHEN       auto, always or never; NO_COLOR is honoured\n"
	"      --no-demangle      show names as the linker has them\n" NAME_HELP
	"  -v, --verbose          all stacks, and errors and paths in full\n"
	DEBUG_HELP "  -h, --help             this text\n"
	"\n"
	"Exit status: 0 nothing was lost and every stack is complete, 3 something was or is not, or a\n"
	"PROCESS was not there (the output says what), 1 nothing was recorded or not all could be written,\n"
	"2 wrong usage.\n";

/* "D", "S,D" or "SD"; more of these options add to it. */
static int parse_states(struct offcpu_filter *filter, const char *text, struct err *err)
{
	const char *p;

	for (p = text; *p; p++) {
		if (*p == ',' && p > text && p[-1] != ',' && p[1])
			continue;
		if (!strchr("SDR", *p))
			break;
		filter->sleeping |= *p == 'S';
		filter->uninterruptible |= *p == 'D';
		filter->runnable |= *p == 'R';
	}
	if (*p || p == text)
		return err_set(err, EINVAL, "--state takes some of S, D and R, not '%s'", text);
	return 0;
}

static int parse_time(const char *option, const char *text, uint64_t unit, uint64_t *ns, struct err *err)
{
	uint64_t value;

	if (!parse_duration(text, unit, &value))
		return err_set(err, EINVAL, "%s takes a time such as 10us, 1.5ms or 2s, not '%s'", option, text);
	*ns = value;
	return 0;
}

static int parse_duration_option(struct offcpu_options *o, const char *text, struct err *err)
{
	int rc = parse_time("--duration", text, second, &o->duration_ns, err);

	return rc == 0 && !o->duration_ns ? err_set(err, EINVAL, "--duration must be more than 0") : rc;
}

/* In the order of enum offcpu_source. */
static const char *const source_words[] = {"auto", "sched_exit", "kprobe", "switch", "proc", NULL};

/* What is said twice or depends on the whole is settled at the end. */
struct reading {
	struct offcpu_options *o;
	int children; /* -1: not said */
	bool kernel_only;
	bool user_only;
};

static int take_option(struct reading *r, int opt, const char *value, struct err *err)
{
	struct offcpu_options *o = r->o;
	uint64_t number;
	int word;

	switch (opt) {
	case OPT_PROCESS:
	case 'p':
		return process_args_add(&o->processes, value, err);
	case 'a':
		o->all = true;
		return 0;
	case 'd':
		return parse_duration_option(o, value, err);
	case OPT_MIN:
		return parse_time("--min", value, 0, &o->filter.min_ns, err);
	case OPT_MAX:
		return parse_time("--max", value, 0, &o->filter.max_ns, err);
	case OPT_STATE:
		return parse_states(&o->filter, value, err);
	case OPT_CHILDREN:
	case OPT_NO_CHILDREN:
		r->children = opt == OPT_CHILDREN;
		return 0;
	case OPT_THREADS:
	case OPT_NO_THREADS:
		o->threads = opt == OPT_THREADS;
		return 0;
	case OPT_WAKERS:
		o->wakers = true;
		return 0;
	case OPT_KERNEL_ONLY:
		r->kernel_only = true;
		return 0;
	case OPT_USER_ONLY:
		r->user_only = true;
		return 0;
	case OPT_FOLDED:
		return view_choose_format(&o->view, &report_format_folded, err);
	case OPT_EVENTS:
		o->events = true;
		o->events_path = value;
		return 0;
	case OPT_HIDE_IDLE:
		o->hide_idle = true;
		return 0;
	case OPT_TOP:
		if (!parse_size(value, 1, UINT32_MAX, &number))
			return err_set(err, EINVAL, "--top takes a number, not '%s'", value);
		o->top = (uint32_t)number;
		return 0;
	case OPT_SOURCE:
		word = parse_word("--source", value, source_words, err);
		o->source = word < 0 ? OFFCPU_SOURCE_AUTO : (enum offcpu_source)word;
		return word < 0 ? word : 0;
	case OPT_READ_MAPS:
		o->read_maps = true;
		return 0;
	default:
		return err_set(err, EINVAL, "unknown option");
	}
}

static const struct option long_options[] = {
	{"pid", required_argument, NULL, 'p'},
	{"all", no_argument, NULL, 'a'},
	{"duration", required_argument, NULL, 'd'},
	{"min", required_argument, NULL, OPT_MIN},
	{"max", required_argument, NULL, OPT_MAX},
	{"state", required_argument, NULL, OPT_STATE},
	{"children", no_argument, NULL, OPT_CHILDREN},
	{"no-children", no_argument, NULL, OPT_NO_CHILDREN},
	{"threads", no_argument, NULL, OPT_THREADS},
	{"no-threads", no_argument, NULL, OPT_NO_THREADS},
	{"wakers", no_argument, NULL, OPT_WAKERS},
	{"kernel-only", no_argument, NULL, OPT_KERNEL_ONLY},
	{"user-only", no_argument, NULL, OPT_USER_ONLY},
	{"folded", no_argument, NULL, OPT_FOLDED},
	{"events", optional_argument, NULL, OPT_EVENTS},
	{"hide-idle", no_argument, NULL, OPT_HIDE_IDLE},
	{"top", required_argument, NULL, OPT_TOP},
	{"source", required_argument, NULL, OPT_SOURCE}, /* for tests: forces a rung */
	{"read-maps", no_argument, NULL, OPT_READ_MAPS}, /* for tests: BPF looks at nobody's mappings */
	{"raw", no_argument, NULL, VIEW_RAW},
	{"no-runtime", no_argument, NULL, VIEW_NO_RUNTIME},
	{"no-addresses", no_argument, NULL, VIEW_NO_ADDRESSES},
	{"long", no_argument, NULL, VIEW_LONG},
	VIEW_OUTPUT_LONG_OPTIONS,
	{0},
};

static const char *path_or_stdout(const char *path)
{
	return path ? path : "-";
}

/* An option that changes nothing but the report; NULL: there is none. */
static const char *of_report(const struct offcpu_options *o)
{
	if (o->view.report.no_addresses || o->view.long_lines)
		return o->view.long_lines ? "--long" : "--no-addresses";
	return o->hide_idle ? "--hide-idle" : o->top ? "--top" : !o->threads ? "--no-threads" : NULL;
}

static int check(const struct reading *r, struct err *err)
{
	const struct offcpu_options *o = r->o;
	unsigned subjects = (o->processes.len > 0) + o->all + (o->command != NULL);
	bool events_only = o->events && !o->events_path;

	if (!subjects)
		return err_set(err, EINVAL, "which process? give -p PROCESS, -a or -- COMMAND");
	if (subjects > 1)
		return err_set(err, EINVAL, "give either -p PROCESS, -a or -- COMMAND");
	if (o->source == OFFCPU_SOURCE_PROC && (o->events || o->wakers))
		return err_set(err, EINVAL, "%s needs BPF: not with --source=proc", o->events ? "--events" : "--wakers");
	if (o->filter.max_ns < o->filter.min_ns)
		return err_set(err, EINVAL, "--max is less than --min: no wait is both");
	if (r->kernel_only && r->user_only)
		return err_set(err, EINVAL, "--kernel-only and --user-only leave no stack");
	if (events_only && !o->view.format->is_text)
		return err_set(err, EINVAL, "--events replaces the report: for both, give it a file, --events=FILE");
	if (o->events_path && strcmp(o->events_path, path_or_stdout(o->view.output)) == 0)
		return err_set(err, EINVAL, "the events and the report cannot both go to %s",
			       strcmp(o->events_path, "-") == 0 ? "standard output" : o->events_path);
	if (events_only && of_report(o))
		return err_set(err, EINVAL,
			       "%s is for the report, which --events replaces: for both, give a file, --events=FILE",
			       of_report(o));
	if (o->view.raw && o->view.no_runtimes)
		return err_set(err, EINVAL, "give either --raw or --no-runtime");
	if (o->top && !o->view.format->is_text)
		return err_set(err, EINVAL, "--top is for the text: %s has all", o->view.format->option);
	return 0;
}

static int finish(struct reading *r, int argc, char **argv, struct err *err)
{
	struct offcpu_options *o = r->o;

	/* Arguments before "--" came as OPT_PROCESS. */
	o->command = optind < argc ? argv + optind : NULL;
	if (o->all && process_args_have_names(&o->processes)) { /* all of these names */
		o->processes.all = true;
		o->all = false;
	}
	if (!o->filter.sleeping && !o->filter.uninterruptible && !o->filter.runnable)
		o->filter.sleeping = o->filter.uninterruptible = o->filter.runnable = true;
	o->children = r->children < 0 ? o->command != NULL : r->children;
	o->processes.children = o->children;
	o->kernel = !r->user_only;
	o->user = !r->kernel_only;
	return check(r, err);
}

int offcpu_options_read(struct offcpu_options *options, int argc, char **argv, struct err *err)
{
	struct reading r = {.o = options, .children = -1};
	int opt, rc;

	*options = (struct offcpu_options){
		.filter = {.min_ns = millisecond, .max_ns = UINT64_MAX},
		.processes = {.takes_all = true},
		.threads = true,
		.view = {.format = &report_format_text},
	};
	while ((opt = getopt_long(argc, argv, "-p:ad:o:vh", long_options, NULL)) != -1) {
		if (opt == '?')
			return err_set(err, EINVAL, "%s", "") /* getopt has said it */;
		if (opt == 'h')
			return 1;
		rc = view_option(&options->view, opt, optarg, err);
		if (rc == 0)
			rc = take_option(&r, opt, optarg, err);
		if (rc < 0)
			return rc;
	}
	return finish(&r, argc, argv, err);
}

void offcpu_options_deinit(struct offcpu_options *options)
{
	process_args_deinit(&options->processes);
	name_options_deinit(&options->view.naming);
}
