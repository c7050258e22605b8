/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "cmd/cmd.h"
#include "cmd/interrupt.h"
#include "cmd/parse.h"
#include "cmd/view.h"

enum {
	OPT_STOP = 1,
	OPT_PTRACE,
	OPT_PROC_MEM,
	OPT_STACK_SIZE,
	OPT_STOP_TIMEOUT,
	OPT_SAVE,
	OPT_SOURCE,
	OPT_VERSION,
};

enum { DEFAULT_STACK_SIZE = 8 * 1024 * 1024, DEFAULT_STOP_TIMEOUT_MS = 1000 };

struct pid_vec {
	VEC_FIELDS(pid_t);
};

struct options {
	struct capture_options capture;
	bool ptrace;
	struct pid_vec pids;
	struct pid_vec tids;
};

static const char help[] =
	"Usage: stakeout [snapshot] [OPTION…] PID…\n"
	"\n"
	"Shows what every thread of running processes is doing and what it waits for. Threads that are asleep are not\n"
	"stopped; threads that run are held for microseconds.\n"
	"\n"
	"Capture:\n"
	"  -p, --pid PID          the same as PID\n"
	"  -t, --tid TID          only this thread (may be repeated)\n"
	"      --stop MODE        auto: hold only what runs (the default); all: hold the whole process once; none: hold\n"
	"                         nothing, running threads are reported as not captured\n"
	"      --stop-timeout MS  how long a thread gets to stop (1000)\n"
	"      --stack-size BYTES most to copy of one stack; suffixes k, m (8m)\n"
	"      --proc-mem         read /proc/PID/mem instead of process_vm_readv\n"
	"      --ptrace           unwind while stopped, reading word by word (slow, for comparison)\n"
	"      --save FILE        also write the raw snapshot there, for `stakeout replay`\n"
	"      --version          version and built-in features\n";

static const char epilogue[] =
	"\n"
	"Exit status: 0 every stack is complete, 3 some are not (the output says why), 1 nothing captured, 2 wrong usage.\n";

/* In the order of enum stop_mode and enum source_choice. */
static const char *const stop_words[] = {"auto", "all", "none", NULL};
static const char *const source_words[] = {"auto", "bpf", "proc", "libbpf", NULL};

static int parse_pid(const char *value, struct pid_vec *out, struct err *err)
{
	uint64_t pid;

	if (!parse_size(value, 1, INT32_MAX, &pid) || strspn(value, "0123456789") != strlen(value))
		return err_set(err, EINVAL, "'%s' is not a process or thread id", value);
	return vec_push(out, (pid_t)pid) ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int parse_option(struct options *o, int opt, const char *value, struct err *err)
{
	uint64_t number;
	int word;

	switch (opt) {
	case 'p':
		return parse_pid(value, &o->pids, err);
	case 't':
		return parse_pid(value, &o->tids, err);
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
	{"stop", required_argument, NULL, OPT_STOP},
	{"ptrace", no_argument, NULL, OPT_PTRACE},
	{"proc-mem", no_argument, NULL, OPT_PROC_MEM},
	{"stack-size", required_argument, NULL, OPT_STACK_SIZE},
	{"stop-timeout", required_argument, NULL, OPT_STOP_TIMEOUT},
	{"save", required_argument, NULL, OPT_SAVE},
	{"source", required_argument, NULL, OPT_SOURCE}, /* for tests: forces a rung */
	{"version", no_argument, NULL, OPT_VERSION},
	{0},
};

/* -1 to go on, else the exit code. */
static int parse_arguments(int argc, char **argv, struct options *o, struct view_options *view)
{
	struct err err = {0};
	int opt, rc;

	while ((opt = getopt_long(argc, argv, VIEW_SHORT_OPTIONS "p:t:", long_options, NULL)) != -1) {
		if (opt == '?')
			return cmd_misused(argv[0], "");
		if (opt == 'h') {
			printf("%s\n%s%s", help, view_help, epilogue);
			return cmd_printed();
		}
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
		if (parse_pid(argv[i], &o->pids, &err) < 0)
			return cmd_misused(argv[0], err.msg);
	if (!o->pids.len)
		return cmd_misused(argv[0], "which process? give its pid");
	if (view->save && o->pids.len > 1)
		return cmd_misused(argv[0], "--save takes one process");
	if (o->ptrace && o->capture.stop == STOP_NONE)
		return cmd_misused(argv[0], "--ptrace has to stop the process: it cannot be used with --stop=none");
	if (o->ptrace)
		o->capture.stop = STOP_ALL;
	o->capture.kernel_stacks = view->report.kernel;
	o->capture.tids = o->tids.len ? o->tids.data : NULL;
	o->capture.ntids = o->tids.len;
	return -1;
}

static int show_process(pid_t pid, const struct options *o, struct view *view, struct err *err)
{
	_cleanup_(cleanup_tracing) struct tracing *tracing = NULL;
	const struct tracing_options options = {
		.capture = o->capture,
		.ptrace = o->ptrace,
		.ignore_deleted = view->options.ignore_deleted,
		.depth = view->options.depth,
	};
	int rc = tracing_capture(pid, &options, monotonic_ns(), err, &tracing);

	return rc < 0 ? rc : view_show(view, tracing, err);
}

int cmd_snapshot(int argc, char **argv)
{
	struct options o = {
		.capture = {.stack_size = DEFAULT_STACK_SIZE, .stop_timeout_ms = DEFAULT_STOP_TIMEOUT_MS},
	};
	struct view view;
	unsigned failed = 0;
	int code;

	view_init(&view);
	code = parse_arguments(argc, argv, &o, &view.options);
	if (code < 0)
		code = cmd_check_proc();
	interrupt_catch();
	for (size_t i = 0; code < 0 && i < o.pids.len; i++) {
		struct err err = {0};

		if (show_process(o.pids.data[i], &o, &view, &err) < 0) {
			cmd_complain(err.msg);
			failed++;
		}
	}
	if (code < 0 && !view.documents)
		code = EXIT_NOTHING;
	else if (code < 0)
		code = failed || view.incomplete ? EXIT_INCOMPLETE : EXIT_COMPLETE;
	view_deinit(&view);
	vec_deinit(&o.pids);
	vec_deinit(&o.tids);
	return code;
}
