/* SPDX-License-Identifier: MIT */
#include "cmd/capture_args.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/parse.h"
#include "proc/family.h"

enum { MIN_WINDOW_NS = 50 * 1000, MAX_WINDOW_NS = 100 * 1000 * 1000 };
enum { DEFAULT_STACK_SIZE = 8 * 1024 * 1024, DEFAULT_STOP_TIMEOUT_MS = 1000 };

void capture_args_init(struct capture_args *args)
{
	*args = (struct capture_args){
		.capture = {.stack_size = DEFAULT_STACK_SIZE, .stop_timeout_ms = DEFAULT_STOP_TIMEOUT_MS},
		.processes = {.takes_all = true},
	};
}

void capture_args_deinit(struct capture_args *args)
{
	process_args_deinit(&args->processes);
	vec_deinit(&args->tids);
}

/* In the order of enum stop_mode and enum source_choice. */
static const char *const stop_words[] = {"auto", "all", "none", "hold", NULL};
static const char *const source_words[] = {"auto", "bpf", "proc", "libbpf", NULL};

int capture_args_option(struct capture_args *args, int opt, const char *value, struct err *err)
{
	uint64_t number;
	int word, rc;

	switch (opt) {
	case 'p':
		rc = process_args_add(&args->processes, value, err);
		return rc < 0 ? rc : 1;
	case 't':
		rc = process_args_add_numbers(&args->tids, value, err);
		return rc < 0 ? rc : 1;
	case 'a':
		args->processes.all = true;
		return 1;
	case CAPTURE_CHILDREN:
		args->processes.children = true;
		return 1;
	case CAPTURE_STOP:
		word = parse_word("--stop", value, stop_words, err);
		args->capture.stop = word < 0 ? STOP_AUTO : (enum stop_mode)word;
		return word < 0 ? word : 1;
	case CAPTURE_SOURCE:
		word = parse_word("--source", value, source_words, err);
		args->capture.source = word < 0 ? SOURCE_AUTO : (enum source_choice)word;
		return word < 0 ? word : 1;
	case CAPTURE_PTRACE:
		args->ptrace = true;
		return 1;
	case CAPTURE_PROC_MEM:
		args->capture.proc_mem = true;
		return 1;
	case CAPTURE_STACK_SIZE:
		if (!parse_size(value, 1024, UINT64_C(1) << 32, &args->capture.stack_size))
			return err_set(err, EINVAL, "--stack-size takes 1k to 4g, not '%s'", value);
		return 1;
	case CAPTURE_WINDOW:
		if (!parse_duration(value, 0, &args->capture.window_ns) || args->capture.window_ns < MIN_WINDOW_NS || args->capture.window_ns > MAX_WINDOW_NS)
			return err_set(err, EINVAL, "--window takes 50us to 100ms, not '%s'", value);
		return 1;
	case CAPTURE_WINDOW_LINGERS:
		args->capture.window_lingers = true;
		return 1;
	case CAPTURE_STOP_TIMEOUT:
		if (!parse_size(value, 1, 3600 * 1000, &number))
			return err_set(err, EINVAL, "--stop-timeout takes milliseconds, not '%s'", value);
		args->capture.stop_timeout_ms = (unsigned)number;
		return 1;
	default:
		return 0;
	}
}

int capture_args_finish(struct capture_args *args, int n, char **words, struct err *err)
{
	for (int i = 0; i < n; i++) {
		int rc = process_args_add(&args->processes, words[i], err);

		if (rc < 0)
			return rc;
	}
	if (!args->processes.len && !args->tids.len)
		return err_set(err, EINVAL, "which process? give its pid or its name");
	if (args->processes.all && !process_args_have_names(&args->processes))
		return err_set(err, EINVAL, "--all is for the processes of a name: give one");
	if (args->tids.len && args->processes.children)
		return err_set(err, EINVAL, "-t is for single threads: not with --children");
	if (args->ptrace && args->capture.stop == STOP_NONE)
		return err_set(err, EINVAL, "--ptrace has to stop the process: it cannot be used with --stop=none");
	return 0;
}

int capture_args_finish_waits(struct capture_args *args, int n, char **words, struct err *err)
{
	if (args->capture.stop == STOP_ALL)
		return err_set(err, EINVAL, "what threads wait for is read while they sleep: not with --stop=all");
	args->capture.kernel_stacks = true;
	return capture_args_finish(args, n, words, err);
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

int capture_args_find(const struct capture_args *args, struct err *err, struct process_ids *out, struct notes *missing)
{
	int rc = args->processes.len ? process_args_find(&args->processes, err, out, missing)
				  : find_processes_of_threads(&args->tids, err, out, missing);

	return rc == 0 && args->processes.children && out->len ? process_ids_add_descendants(out, err) : rc;
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

static struct tracing_options tracing_options_of(const struct capture_args *args, const struct view_options *view)
{
	return (struct tracing_options){
		.capture = args->capture,
		.ptrace = args->ptrace,
		.ignore_deleted = view->ignore_deleted,
		.no_runtimes = view->no_runtimes,
		.locals = view->locals,
		.depth = view->depth,
	};
}

static int show_process(struct process_id id, const struct capture_args *args, struct view *view, struct err *err)
{
	_cleanup_(cleanup_tracing) struct tracing *tracing = NULL;
	struct tracing_options options = tracing_options_of(args, &view->options);
	struct tid_list tids = {0};
	uint64_t started = monotonic_ns();
	int rc = choose_threads(id.pid, &args->tids, err, &tids);

	options.capture.tids = tids.data;
	options.capture.ntids = tids.len;
	if (rc == 0)
		rc = tracing_capture(id, &options, started, err, &tracing);
	if (rc == 0)
		rc = view_show(view, steal_ptr(tracing), err);
	vec_deinit(&tids);
	return rc;
}

/* Together if nobody has to be stopped for it. */
static bool takes_together(const struct capture_args *args, size_t n)
{
	return n > 1 && !args->tids.len && args->capture.stop == STOP_AUTO;
}

void capture_args_take(const struct capture_args *args, const struct view_options *view, struct tracing_job *jobs, size_t n)
{
	const struct tracing_options options = tracing_options_of(args, view);

	if (takes_together(args, n)) {
		tracing_capture_all(jobs, n, &options, monotonic_ns());
		return;
	}
	for (size_t i = 0; i < n; i++)
		jobs[i].rc = tracing_capture(jobs[i].id, &options, monotonic_ns(), &jobs[i].err, &jobs[i].tracing);
}

/* Some processes, captured together. How many could not be shown. */
static unsigned show_together(const struct process_id *ids, size_t n, const struct capture_args *args, struct view *view)
{
	const struct tracing_options options = tracing_options_of(args, &view->options);
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
static unsigned show_processes(const struct process_ids *ids, const struct capture_args *args, struct view *view)
{
	unsigned failed = 0;

	/* Not more at a time than there are descriptors and memory for. */
	for (size_t i = 0; takes_together(args, ids->len); i += CAPTURE_TOGETHER) {
		if (i >= ids->len)
			return failed;
		failed += show_together(ids->data + i, ids->len - i < CAPTURE_TOGETHER ? ids->len - i : CAPTURE_TOGETHER, args, view);
	}
	for (size_t i = 0; i < ids->len; i++) {
		struct err err = {0};

		if (show_process(ids->data[i], args, view, &err) < 0) {
			cmd_complain(err.msg);
			failed++;
		}
	}
	return failed;
}

int capture_args_show(const char *command, const struct capture_args *args, struct view *view)
{
	_cleanup_(notes_deinit) struct notes missing = {0};
	struct process_ids ids = {0};
	struct err err = {0};
	unsigned failed;
	int code = EXIT_NOTHING;

	if (capture_args_find(args, &err, &ids, &missing) < 0) {
		cmd_complain(err.msg);
	} else if (view->options.save && ids.len > 1) {
		code = cmd_misused(command, "--save takes one process");
	} else if (view->options.why && ids.len > CAPTURE_TOGETHER) {
		code = cmd_misused(command, "these are too many processes to be looked at in one instant");
	} else {
		for (size_t i = 0; i < missing.len; i++)
			cmd_complain(missing.data[i]);
		failed = show_processes(&ids, args, view);
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
