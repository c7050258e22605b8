/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "cmd/cmd.h"
#include "cmd/interrupt.h"
#include "cmd/parse.h"
#include "cmd/process_args.h"
#include "cmd/view.h"
#include "proc/family.h"

enum {
	OPT_STOP = 1,
	OPT_PTRACE,
	OPT_PROC_MEM,
	OPT_STACK_SIZE,
	OPT_STOP_TIMEOUT,
	OPT_SAVE,
	OPT_SOURCE,
	OPT_CHILDREN,
	OPT_VERSION,
	OPT_WINDOW,
	OPT_WINDOW_LINGERS,
};

enum { TOGETHER = 64 }; /* processes */
enum { MIN_WINDOW_NS = 50 * 1000, MAX_WINDOW_NS = 100 * 1000 * 1000 };
enum { DEFAULT_STACK_SIZE = 8 * 1024 * 1024, DEFAULT_STOP_TIMEOUT_MS = 1000 };

struct options {
	struct capture_options capture;
	bool ptrace;
	struct process_args processes;
	struct tid_list tids; /* of these threads only */
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
	"  -a, --all              all processes of a name that several have\n"
	"      --children         also processes that these have started\n"
	"\n"
	"Capture:\n"
	"      --stop MODE        auto: stop nobody, and take the CPUs of what runs for microseconds (the\n"
	"                         default); hold: stop what runs, by ptrace; all: stop the whole process\n"
	"                         once; none: neither, running threads are reported as not captured\n"
	"      --window TIME      how long CPUs are taken at most (1ms)\n"
	"      --stop-timeout MS  how long a thread gets to stop (1000)\n"
	"      --stack-size BYTES most to copy of one stack; suffixes k, m (8m)\n"
	"      --proc-mem         read /proc/PID/mem instead of process_vm_readv\n"
	"      --ptrace           unwind while stopped, reading word by word (slow, for comparison)\n"
	"      --save FILE        also write the raw snapshot there, for `stakeout replay`\n"
	"      --version          version and built-in features\n";

static const char epilogue[] =
	"\n"
	"Exit status: 0 every stack is complete, 3 some are not (the output says why), 1 nothing captured,\n"
	"2 wrong usage.\n";

static const char why_help[] =
	"Usage: stakeout why [OPTION…] PROCESS…\n"
	"\n"
	"Says what each thread waits for, who holds it and what that one waits for, and which threads wait\n"
	"for each other for ever. Several processes are looked at in one instant. As in a snapshot, no\n"
	"thread is stopped.\n"
	"PROCESS is a pid or a name; several may be separated by commas.\n"
	"\n"
	"Which processes:\n"
	"  -p, --pid PROCESS      the same as PROCESS\n"
	"  -a, --all              all processes of a name that several have\n"
	"      --children         also processes that these have started\n"
	"\n"
	"Capture:\n"
	"      --stop MODE        auto, hold or none: as for a snapshot\n"
	"      --window TIME      how long CPUs are taken at most (1ms)\n"
	"      --stop-timeout MS  how long a thread gets to stop (1000)\n"
	"      --stack-size BYTES most to copy of one stack; suffixes k, m (8m)\n"
	"      --proc-mem         read /proc/PID/mem instead of process_vm_readv\n"
	"\n"
	"Output:\n"
	"      --json             one JSON document\n"
	"  -o, --output FILE      write there instead of standard output\n"
	"      --color WHEN       auto, always or never; NO_COLOR is honoured\n"
	"      --no-demangle      show names as the linker has them\n" NAME_HELP
	"  -v, --verbose          all frames, how they were found, and paths in full\n"
	DEBUG_HELP "  -h, --help             this text\n"
	"\n"
	"Exit status: 0 no deadlock was found, 4 one was, 3 none was but not everything could be seen,\n"
	"1 nothing captured, 2 wrong usage.\n";

/* In the order of enum stop_mode and enum source_choice. */
static const char *const stop_words[] = {"auto", "all", "none", "hold", NULL};
static const char *const source_words[] = {"auto", "bpf", "proc", "libbpf", NULL};

static int parse_option(struct options *o, int opt, const char *value, struct err *err)
{
	uint64_t number;
	int word;

	switch (opt) {
	case 'p':
		return process_args_add(&o->processes, value, err);
	case 't':
		return process_args_add_numbers(&o->tids, value, err);
	case 'a':
		o->processes.all = true;
		return 0;
	case OPT_CHILDREN:
		o->processes.children = true;
		return 0;
	case OPT_STOP:
		word = parse_word("--stop", value, stop_words, err);
		o->capture.stop = word < 0 ? STOP_AUTO : (enum stop_mode)word;
		return word < 0 ? word : 0;
	case OPT_SOURCE:
		word = parse_word("--source", value, source_words, err);
		o->capture.source = word < 0 ? SOURCE_AUTO : (enum source_choice)word;
		return word < 0 ? word : 0;
	case OPT_PTRACE:
		o->ptrace = true;
		return 0;
	case OPT_PROC_MEM:
		o->capture.proc_mem = true;
		return 0;
	case OPT_STACK_SIZE:
		if (!parse_size(value, 1024, UINT64_C(1) << 32, &o->capture.stack_size))
			return err_set(err, EINVAL, "--stack-size takes 1k to 4g, not '%s'", value);
		return 0;
	case OPT_WINDOW:
		if (!parse_duration(value, 0, &o->capture.window_ns) || o->capture.window_ns < MIN_WINDOW_NS || o->capture.window_ns > MAX_WINDOW_NS)
			return err_set(err, EINVAL, "--window takes 50us to 100ms, not '%s'", value);
		return 0;
	case OPT_WINDOW_LINGERS:
		o->capture.window_lingers = true;
		return 0;
	case OPT_STOP_TIMEOUT:
		if (!parse_size(value, 1, 3600 * 1000, &number))
			return err_set(err, EINVAL, "--stop-timeout takes milliseconds, not '%s'", value);
		o->capture.stop_timeout_ms = (unsigned)number;
		return 0;
	default:
		return err_set(err, EINVAL, "unknown option");
	}
}

static const struct option long_options[] = {
	VIEW_LONG_OPTIONS,
	{"pid", required_argument, NULL, 'p'},
	{"tid", required_argument, NULL, 't'},
	{"all", no_argument, NULL, 'a'},
	{"children", no_argument, NULL, OPT_CHILDREN},
	{"stop", required_argument, NULL, OPT_STOP},
	{"ptrace", no_argument, NULL, OPT_PTRACE},
	{"proc-mem", no_argument, NULL, OPT_PROC_MEM},
	{"stack-size", required_argument, NULL, OPT_STACK_SIZE},
	{"stop-timeout", required_argument, NULL, OPT_STOP_TIMEOUT},
	{"window", required_argument, NULL, OPT_WINDOW},
	{"window-lingers", no_argument, NULL, OPT_WINDOW_LINGERS}, /* for tests: it lasts as long as it may */
	{"save", required_argument, NULL, OPT_SAVE},
	{"source", required_argument, NULL, OPT_SOURCE}, /* for tests: forces a rung */
	{"version", no_argument, NULL, OPT_VERSION},
	{0},
};

static const struct option why_options[] = {
	{"pid", required_argument, NULL, 'p'},
	{"all", no_argument, NULL, 'a'},
	{"children", no_argument, NULL, OPT_CHILDREN},
	{"stop", required_argument, NULL, OPT_STOP},
	{"proc-mem", no_argument, NULL, OPT_PROC_MEM},
	{"stack-size", required_argument, NULL, OPT_STACK_SIZE},
	{"stop-timeout", required_argument, NULL, OPT_STOP_TIMEOUT},
	{"window", required_argument, NULL, OPT_WINDOW},
	{"window-lingers", no_argument, NULL, OPT_WINDOW_LINGERS},
	{"source", required_argument, NULL, OPT_SOURCE},
	{"json", no_argument, NULL, VIEW_JSON},
	{"output", required_argument, NULL, 'o'},
	{"color", required_argument, NULL, VIEW_COLOR},
	{"no-color", no_argument, NULL, VIEW_NO_COLOR},
	{"no-demangle", no_argument, NULL, VIEW_NO_DEMANGLE},
	NAME_LONG_OPTIONS,
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int print_help(bool why)
{
	if (why)
		fputs(why_help, stdout);
	else
		printf("%s\n%s%s", help, view_help, epilogue);
	return cmd_printed();
}

/* -1 to go on, else the exit code. */
static int parse_arguments(int argc, char **argv, struct options *o, struct view_options *view)
{
	const char *const letters = view->why ? "p:ao:vh" : VIEW_SHORT_OPTIONS "p:t:a";
	struct err err = {0};
	int opt, rc;

	while ((opt = getopt_long(argc, argv, letters, view->why ? why_options : long_options, NULL)) != -1) {
		if (opt == '?')
			return cmd_misused(argv[0], "");
		if (opt == 'h')
			return print_help(view->why);
		if (opt == OPT_VERSION)
			return cmd_version(1, argv);
		if (opt == OPT_SAVE) {
			view->save = optarg;
			continue;
		}
		rc = view_option(view, opt, optarg, &err);
		if (rc == 0)
			rc = parse_option(o, opt, optarg, &err);
		if (rc < 0)
			return cmd_misused(argv[0], err.msg);
	}
	for (int i = optind; i < argc; i++)
		if (process_args_add(&o->processes, argv[i], &err) < 0)
			return cmd_misused(argv[0], err.msg);
	if (view_check(view, &err) < 0)
		return cmd_misused(argv[0], err.msg);
	if (!o->processes.len && !o->tids.len)
		return cmd_misused(argv[0], "which process? give its pid or its name");
	if (o->processes.all && !process_args_have_names(&o->processes))
		return cmd_misused(argv[0], "--all is for the processes of a name: give one");
	if (o->tids.len && o->processes.children)
		return cmd_misused(argv[0], "-t is for single threads: not with --children");
	if (view->why && o->capture.stop == STOP_ALL)
		return cmd_misused(argv[0], "what threads wait for is read while they sleep: not with --stop=all");
	if (o->ptrace && o->capture.stop == STOP_NONE)
		return cmd_misused(argv[0], "--ptrace has to stop the process: it cannot be used with --stop=none");
	if (o->ptrace)
		o->capture.stop = STOP_ALL;
	o->capture.kernel_stacks = view->report.kernel;
	return -1;
}

/* The processes of the threads that were asked for. */
static int find_processes_of_threads(const struct tid_list *tids, struct err *err, struct process_ids *out,
				     struct notes *missing)
{
	for (size_t i = 0; i < tids->len; i++) {
		pid_t pid = process_of_thread(tids->data[i]);

		if (!pid)
			notes_add(missing, "there is no thread %d", (int)tids->data[i]);
		else if (!process_ids_have(out, pid) && !vec_push(out, (struct process_id){.pid = pid}))
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

static int find_processes(const struct options *o, struct err *err, struct process_ids *out, struct notes *missing)
{
	int rc = o->processes.len ? process_args_find(&o->processes, err, out, missing)
				  : find_processes_of_threads(&o->tids, err, out, missing);

	return rc == 0 && o->processes.children && out->len ? process_ids_add_descendants(out, err) : rc;
}

/* Those of the threads that are the process's own; when none is, all, so that the capture says which it does not have. */
static int choose_threads(pid_t pid, const struct tid_list *tids, struct err *err, struct tid_list *out)
{
	for (size_t i = 0; i < tids->len; i++)
		if (process_of_thread(tids->data[i]) == pid && !vec_push(out, tids->data[i]))
			return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; !out->len && i < tids->len; i++)
		if (!vec_push(out, tids->data[i]))
			return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static struct tracing_options tracing_options_of(const struct options *o, const struct view *view)
{
	return (struct tracing_options){
		.capture = o->capture,
		.ptrace = o->ptrace,
		.ignore_deleted = view->options.ignore_deleted,
		.no_runtimes = view->options.no_runtimes,
		.locals = view->options.locals,
		.depth = view->options.depth,
	};
}

static int show_process(struct process_id id, const struct options *o, struct view *view, struct err *err)
{
	_cleanup_(cleanup_tracing) struct tracing *tracing = NULL;
	struct tracing_options options = tracing_options_of(o, view);
	struct tid_list tids = {0};
	uint64_t started = monotonic_ns();
	int rc = choose_threads(id.pid, &o->tids, err, &tids);

	options.capture.tids = tids.data;
	options.capture.ntids = tids.len;
	if (rc == 0)
		rc = tracing_capture(id, &options, started, err, &tracing);
	if (rc == 0)
		rc = view_show(view, steal_ptr(tracing), err);
	vec_deinit(&tids);
	return rc;
}

/* Some processes, captured together. How many could not be shown. */
static unsigned show_together(const struct process_id *ids, size_t n, const struct options *o, struct view *view)
{
	const struct tracing_options options = tracing_options_of(o, view);
	struct tracing_job *jobs = calloc(n, sizeof(*jobs));
	unsigned failed = 0;

	if (!jobs) {
		cmd_complain("out of memory");
		return (unsigned)n;
	}
	for (size_t i = 0; i < n; i++)
		jobs[i].id = ids[i];
	tracing_capture_all(jobs, n, &options, monotonic_ns());
	for (size_t i = 0; i < n; i++) {
		if (jobs[i].rc == 0)
			jobs[i].rc = view_show(view, jobs[i].tracing, &jobs[i].err);
		if (jobs[i].rc < 0) {
			cmd_complain(jobs[i].err.msg);
			failed++;
		}
	}
	free(jobs);
	return failed;
}

/* How many could not be shown. */
static unsigned show_processes(const struct process_ids *ids, const struct options *o, struct view *view)
{
	unsigned failed = 0;

	/* Together if nobody has to be stopped for it; not more than there are descriptors and memory for. */
	for (size_t i = 0; ids->len > 1 && !o->tids.len && o->capture.stop == STOP_AUTO; i += TOGETHER) {
		if (i >= ids->len)
			return failed;
		failed += show_together(ids->data + i, ids->len - i < TOGETHER ? ids->len - i : TOGETHER, o, view);
	}
	for (size_t i = 0; i < ids->len; i++) {
		struct err err = {0};

		if (show_process(ids->data[i], o, view, &err) < 0) {
			cmd_complain(err.msg);
			failed++;
		}
	}
	return failed;
}

static int snapshot(char **argv, const struct options *o, struct view *view)
{
	_cleanup_(notes_deinit) struct notes missing = {0};
	struct process_ids ids = {0};
	struct err err = {0};
	unsigned failed;
	int code = EXIT_NOTHING;

	if (find_processes(o, &err, &ids, &missing) < 0) {
		cmd_complain(err.msg);
	} else if (view->options.save && ids.len > 1) {
		code = cmd_misused(argv[0], "--save takes one process");
	} else if (view->options.why && ids.len > TOGETHER) {
		code = cmd_misused(argv[0], "these are too many processes to be looked at in one instant");
	} else {
		for (size_t i = 0; i < missing.len; i++)
			cmd_complain(missing.data[i]);
		failed = show_processes(&ids, o, view);
		if (view_finish(view, &err) < 0)
			cmd_complain(err.msg);
		else if (view->documents && view->deadlock)
			code = EXIT_DEADLOCK;
		else if (view->documents)
			code = failed || missing.len || view->incomplete ? EXIT_INCOMPLETE : EXIT_COMPLETE;
	}
	vec_deinit(&ids);
	return code;
}

static int run(int argc, char **argv, bool why)
{
	struct options o = {
		.capture = {.stack_size = DEFAULT_STACK_SIZE, .stop_timeout_ms = DEFAULT_STOP_TIMEOUT_MS},
		.processes = {.takes_all = true},
	};
	struct view view;
	int code;

	view_init(&view);
	view.options.why = why;
	code = parse_arguments(argc, argv, &o, &view.options);
	if (code < 0)
		code = cmd_check_proc();
	interrupt_catch();
	if (code < 0)
		code = snapshot(argv, &o, &view);
	view_deinit(&view);
	process_args_deinit(&o.processes);
	vec_deinit(&o.tids);
	return code;
}

int cmd_snapshot(int argc, char **argv)
{
	return run(argc, argv, false);
}

int cmd_why(int argc, char **argv)
{
	return run(argc, argv, true);
}
