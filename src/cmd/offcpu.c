/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/child.h"
#include "cmd/cmd.h"
#include "cmd/interrupt.h"
#include "cmd/offcpu_events.h"
#include "cmd/offcpu_look.h"
#include "cmd/offcpu_options.h"
#include "cmd/output.h"
#include "cmd/parsing.h"
#include "cmd/terminal.h"
#include "offcpu/command.h"
#include "offcpu/profile.h"
#include "offcpu/session.h"
#include "offcpu/targets.h"
#include "privilege/capabilities.h"
#include "proc/process.h"
#include "report/offcpu.h"
#include "target/patience.h"

enum { LIVE_LINE_NS = 250000000 };

/* Where it all goes: events, a report or both. Without a file: it is not wanted. */
struct outputs {
	struct output events;
	struct output report;
};

/* No output is left to record for. */
static bool is_in_vain(const struct outputs *outputs, const struct event_writer *writer)
{
	return !outputs->report.file && !event_writer_works(writer);
}

/* Only on a terminal that nobody else writes to meanwhile: it would tear their lines. */
static bool has_live_line(const struct offcpu_options *o, const struct outputs *outputs)
{
	bool shared = (outputs->events.file && isatty(fileno(outputs->events.file))) || (o->command && isatty(STDOUT_FILENO));

	return terminal_is_capable(STDERR_FILENO) && !shared;
}

static void show_live_line(const struct offcpu_session *session, uint64_t start, uint64_t now, uint64_t end)
{
	struct watch_progress progress = session->watch->ops->progress(session->watch);

	if (end)
		fprintf(stderr, "\r\033[K%.0f s left, ", (double)(end - now) / NS_PER_S);
	else
		fprintf(stderr, "\r\033[Krecording for %.0f s, Ctrl-C ends; ", (double)(now - start) / NS_PER_S);
	fprintf(stderr, "%" PRIu64 " waits, %" PRIu64 " lost", progress.waits, progress.lost);
	fflush(stderr);
}

/*
 * Ctrl-C before the recording began. If something kept it from beginning, that was given up, and the recording takes the
 * time that was asked for.
 */
static bool is_interrupted(const struct offcpu_options *o)
{
	_cleanup_(notes_deinit) struct notes silent = {0};

	return patience_is_interrupted() && !(o->duration_ns && patience_tell(&silent));
}

/*
 * Until the time is over, the command has ended, there is no process any more or nobody who reads the events, or somebody
 * presses Ctrl-C.
 */
static void record(const struct offcpu_options *o, struct offcpu_session *session, struct child *child,
		   const struct outputs *outputs, const struct event_writer *writer, const sigset_t *signals)
{
	uint64_t start = monotonic_ns(), end = 0;
	bool live = has_live_line(o, outputs);

	if (o->duration_ns && __builtin_add_overflow(start, o->duration_ns, &end))
		end = UINT64_MAX;
	for (;;) {
		uint64_t now = monotonic_ns(), wait = LIVE_LINE_NS;
		struct timespec timeout;
		int sig;

		if ((end && now >= end) || is_interrupted(o) || child_has_ended(child) || session->watch->ops->is_over(session->watch) ||
		    is_in_vain(outputs, writer))
			break;
		if (live)
			show_live_line(session, start, now, end);
		if (end && end - now < wait)
			wait = end - now;
		timeout = ns_to_timespec(wait);
		sig = sigtimedwait(signals, NULL, &timeout);
		if (sig == SIGINT) { /* what still waits for others now does so for a short while at most */
			interrupt_let_end();
			patience_hurry();
		}
		if (sig > 0 && sig != SIGCHLD)
			break;
	}
	if (live)
		fputs("\r\033[K", stderr);
}

/* Whatever it is called, also a pipe. Into /dev/null or a terminal both may go. */
static bool are_same_file(FILE *a, FILE *b)
{
	struct stat x, y;

	return fstat(fileno(a), &x) == 0 && fstat(fileno(b), &y) == 0 && !S_ISCHR(x.st_mode) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static int open_outputs(const struct offcpu_options *o, struct outputs *outputs, struct err *err)
{
	const char *events = o->events_path ? o->events_path : o->view.output, *report = o->view.output;
	int rc = 0;

	/* What is in a file stays until there is something to write. */
	if (o->events)
		rc = output_open(&outputs->events, events, OUTPUT_REPORT, err);
	if (rc == 0 && (!o->events || o->events_path))
		rc = output_open(&outputs->report, report, OUTPUT_REPORT, err);
	if (rc == 0 && outputs->events.file && outputs->report.file &&
	    are_same_file(outputs->events.file, outputs->report.file))
		return err_set(err, EINVAL, "the events and the report cannot both go to %s",
			       outputs->report.file == stdout ? "standard output" : report);
	return rc == 0 ? output_empty(&outputs->events, err) : rc;
}

/* For a format that has no place for them. */
static void tell_losses(const struct offcpu_profile *profile)
{
	for (size_t i = 0; i < profile->losses.len; i++)
		if (profile->losses.data[i].count)
			fprintf(stderr, "stakeout: lost: %" PRIu64 " %s\n", profile->losses.data[i].count,
				profile->losses.data[i].name);
	for (size_t i = 0; i < profile->notes.len; i++)
		cmd_complain(profile->notes.data[i]);
}

static struct offcpu_report_options report_options(const struct offcpu_options *o, FILE *out)
{
	struct view_options view = o->view;

	view_fit_terminal(&view, out);
	return (struct offcpu_report_options){
		.color = view_has_color(&o->view, out),
		.verbose = o->view.report.verbose,
		.hide_idle = o->hide_idle,
		.top = o->top,
		.width = view.report.width,
		.no_addresses = view.report.no_addresses,
	};
}

static int write_profile(const struct offcpu_options *o, const struct offcpu_report_options *options,
			 const struct offcpu_profile *profile, FILE *out, struct err *err)
{
	int rc = o->view.format->profile(profile, options, out);

	if (!o->view.format->has_notes)
		tell_losses(profile);
	return rc < 0 ? err_set(err, -rc, "writing the output: %s", strerror(-rc)) : 0;
}

/* What is not known of the recording itself; `silent` gets what did not answer, and owns it. */
static int add_notes(const struct offcpu_options *o, const struct offcpu_targets *targets, struct notes *silent,
		     struct offcpu_profile *out, struct err *err)
{
	const struct name_options *naming = &o->view.naming;
	bool ok = true;

	for (size_t i = 0; ok && i < targets->notes.len; i++)
		ok = vec_push(&out->notes, targets->notes.data[i]);
	if (ok && naming->cache_error.code && o->view.report.verbose)
		ok = vec_push(&out->notes, naming->cache_error.msg);
	if (ok && naming->debuginfod_error.code)
		ok = vec_push(&out->notes, naming->debuginfod_error.msg);
	patience_tell(silent);
	for (size_t i = 0; ok && i < silent->len; i++)
		ok = vec_push(&out->notes, silent->data[i]);
	return ok ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* What a parser is made for. */
struct offcpu_work {
	const struct offcpu_options *options;
	struct offcpu_report_options form; /* a parser cannot ask a terminal */
	struct output *report;
	struct offcpu_session *session;
	const struct offcpu_targets *targets;
	struct offcpu_profile *profile;
	struct offcpu_look *look;
	struct notes *silent;
	const char *death; /* why there is no parser, which is said in the report */
};

/* Names and writes what was recorded, in the parser or, if that has died, here. */
static int write_named(const struct offcpu_work *work, FILE *out, bool *incomplete, struct err *err)
{
	const struct native_names_options names = {.demangle = !work->options->view.no_demangle, .symbols = work->options->view.naming.symbols};
	struct offcpu_profile *profile = work->profile;
	int rc = work->session->watch->ops->finish(work->session->watch, err, profile);

	if (rc == 0)
		rc = add_notes(work->options, work->targets, work->silent, profile, err);
	if (rc == 0 && work->death && !vec_push(&profile->notes, work->death))
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc == 0 && !work->death)
		rc = offcpu_look_tell(work->look, &names, profile, err);
	if (rc == 0)
		offcpu_profile_use_looks(profile);
	if (rc == 0)
		rc = write_profile(work->options, &work->form, profile, out, err);
	if (rc == 0)
		*incomplete = work->death || !offcpu_profile_is_complete(profile) || work->silent->len;
	return rc;
}

/* For struct parsing: in the parser. */
static int name_and_write(void *arg, struct parsing *parsing, struct err *err)
{
	const struct offcpu_work *work = arg;
	int rc = write_named(work, parsing->report, &parsing->outcome->incomplete, err);

	if (rc == 0)
		rc = parsing_hand_over(parsing, err);
	work->session->watch->ops->keep_names(work->session->watch);
	return rc;
}

static int begin_report(const struct offcpu_work *work, struct err *err)
{
	return output_empty(work->report, err);
}

/* For struct parsing: in the broker. */
static int print(void *arg, int fd, struct err *err)
{
	const struct offcpu_work *work = arg;
	int rc = begin_report(work, err);

	return rc == 0 ? output_copy(work->report, fd, err) : rc;
}

static int write_without_names(struct offcpu_work *work, const struct err *why, bool *incomplete, struct err *err)
{
	char words[PARSING_WORDS];
	int rc = begin_report(work, err);

	parsing_explain(why, words);
	work->death = words;
	work->session->watch->ops->forgo_names(work->session->watch);
	if (rc == 0)
		rc = write_named(work, work->report->file, incomplete, err);
	work->death = NULL;
	return rc;
}

static int judge(struct offcpu_work *work, const struct parsing *parsing, int rc, const struct err *how, bool *incomplete,
		 struct err *err)
{
	if (parsing->printed) {
		*incomplete = parsing->outcome->incomplete;
		*err = parsing->print_error;
		return -parsing->print_error.code;
	}
	if (rc < 0)
		return write_without_names(work, how, incomplete, err);
	return err_set(err, parsing->outcome->err.code ? parsing->outcome->err.code : EIO, "%s", parsing->outcome->err.msg);
}

/* A report alone: names are found, and it is written, by a process without rights. */
static int write_report(struct offcpu_work *work, bool *incomplete, struct err *err)
{
	struct parsing parsing = {.work = name_and_write, .print = print, .arg = work};
	struct watch_targets targets = {0};
	struct err how = {0};
	int rc = 0;

	if (!work->session->watch->ops->prepare(work->session->watch, &targets) || !offcpu_look_prepare(work->look, &targets))
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc == 0) {
		parsing.files = (struct file_scope){.targets = targets.data, .n = targets.len, .roots = targets.roots};
		parsing.symbols = work->options->view.naming.symbols;
		rc = judge(work, &parsing, parsing_run(&parsing, &how), &how, incomplete, err);
		parsing_end(&parsing);
	}
	vec_deinit(&targets);
	if (output_close(work->report, NULL) < 0 && rc == 0)
		rc = err_set(err, EIO, "the report cannot be written");
	return rc;
}

/* A report is written also when the events beside it could not be; but that is still a failure, said in the end. */
static int write_all(const struct offcpu_options *o, struct outputs *outputs, struct offcpu_session *session,
		     const struct offcpu_targets *targets, struct event_writer *writer, struct notes *silent,
		     struct offcpu_profile *profile, struct err *err)
{
	int rc = event_writer_stop(writer, err), events_rc;
	struct offcpu_report_options form;
	struct err events_err = {0};
	bool has_report = outputs->report.file;

	if (rc < 0 && !has_report)
		return rc;
	rc = session->watch->ops->finish(session->watch, err, profile);
	if (rc == 0)
		rc = add_notes(o, targets, silent, profile, err);
	if (rc < 0)
		return rc;
	events_rc = event_writer_end(writer, profile, &events_err);
	if (output_close(&outputs->events, NULL) < 0 && events_rc == 0)
		events_rc = err_set(&events_err, EIO, "the events cannot be written");
	rc = output_empty(&outputs->report, err);
	if (rc == 0 && has_report) {
		form = report_options(o, outputs->report.file);
		rc = write_profile(o, &form, profile, outputs->report.file, err);
	}
	if (output_close(&outputs->report, NULL) < 0 && rc == 0)
		rc = err_set(err, EIO, "the report cannot be written");
	if (rc < 0 || events_rc == 0)
		return rc;
	*err = events_err;
	return has_report ? -EIO : events_rc; /* a broken pipe needs words if that is not all */
}

/* If none of the processes is there, each is reported; the last by the error. */
static int find_targets(const struct offcpu_options *o, struct offcpu_targets *targets, struct err *err)
{
	_cleanup_(notes_deinit) struct notes missing = {0};
	struct process_ids ids = {0};
	int rc = process_args_find(&o->processes, err, &ids, &missing);

	if (rc == 0)
		rc = offcpu_targets_take(targets, &ids, &missing, err);
	vec_deinit(&ids);
	for (size_t i = 0; rc < 0 && i + 1 < targets->notes.len; i++)
		cmd_complain(targets->notes.data[i]);
	return rc;
}

/* Of the command that waits to be let go, if there is one, or of these processes, or of all. */
static int start_session(struct offcpu_session *session, const struct offcpu_options *o, const struct tid_list *pids,
			 const struct child *child, struct err *err)
{
	const struct offcpu_session_options options = {
		.watch = {
			.pids = child->pid ? &child->pid : pids->data,
			.npids = child->pid ? 1 : pids->len,
			.all_processes = o->all,
			.children = o->children,
			.by_thread = o->threads,
			.kernel_stacks = o->kernel,
			.user_stacks = o->user,
			.runtimes = o->user && !o->view.no_runtimes,
			.keep_native = o->view.raw,
			.wakers = o->wakers,
			.filter = o->filter,
			.names = {.demangle = !o->view.no_demangle, .symbols = o->view.naming.symbols},
		},
		.source = o->source,
		.read_maps = o->read_maps,
		.only_new = child->pid != 0, /* the command waits for us: that is none of its own waits */
		.events = o->events,
	};

	return offcpu_session_start(session, &options, err);
}

static void end_child(struct child *child)
{
	child_terminate(child);
	child_wait(child);
}

static int run(struct offcpu_options *o, struct err *err)
{
	_cleanup_(offcpu_session_deinit) struct offcpu_session session = {0};
	_cleanup_(offcpu_profile_deinit) struct offcpu_profile profile = {0};
	_cleanup_(offcpu_look_deinit) struct offcpu_look look = {0};
	_cleanup_(offcpu_targets_deinit) struct offcpu_targets targets = {0};
	_cleanup_(event_writer_deinit) struct event_writer writer = {0};
	_cleanup_(end_child) struct child child = CHILD_NONE;
	_cleanup_(notes_deinit) struct notes silent = {0};
	sigset_t signals, before;
	struct outputs outputs = {0};
	bool incomplete = true;
	int rc;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP); /* the terminal is closed: a file may still be written */
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	interrupt_catch();
	rc = process_check_mounted(err);
	if (rc == 0)
		rc = find_targets(o, &targets, err);
	/* What cannot be written is said before the recording, not after it. */
	if (rc == 0)
		rc = open_outputs(o, &outputs, err);
	/* The number that a fork returns is of our own pid namespace. */
	if (rc == 0 && o->command)
		rc = process_check_numbers(err);
	if (rc == 0 && o->command && o->user)
		command_map_code(o->command[0]); /* the child has it too, and so it is among the tables before it starts */
	if (rc == 0 && o->command)
		rc = child_start(&child, o->command, &before, err);
	capabilities_drop_needless(); /* but the command has all that it would have without us */
	if (rc == 0)
		rc = start_session(&session, o, &targets.pids, &child, err);
	if (rc == 0)
		rc = event_writer_start(&writer, outputs.events.file, session.recording, err);
	if (rc == 0 && is_in_vain(&outputs, &writer))
		rc = event_writer_stop(&writer, err);
	if (rc == 0 && child.pid)
		rc = child_release(&child, o->command[0], err);
	if (rc < 0)
		return rc;
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	record(o, &session, &child, &outputs, &writer, &signals);
	/* A second Ctrl-C ends us, whoever we wait for. A terminal that is closed sends more than one signal. */
	sigaddset(&before, SIGHUP);
	sigprocmask(SIG_SETMASK, &before, NULL);
	session.watch->ops->stop(session.watch);
	child_terminate(&child);
	if (o->events) { /* their names are found while it is recorded */
		rc = write_all(o, &outputs, &session, &targets, &writer, &silent, &profile, err);
		incomplete = !offcpu_profile_is_complete(&profile) || silent.len;
	} else {
		struct offcpu_work work = {
			.options = o,
			.form = report_options(o, outputs.report.file),
			.report = &outputs.report,
			.session = &session,
			.targets = &targets,
			.profile = &profile,
			.look = &look,
			.silent = &silent,
		};

		offcpu_look_take(&look, &targets.pids, o->children);
		rc = write_report(&work, &incomplete, err);
	}
	if (rc < 0)
		return rc;
	return !incomplete && !targets.missing ? EXIT_COMPLETE : EXIT_INCOMPLETE;
}

int cmd_offcpu(int argc, char **argv)
{
	struct offcpu_options o;
	struct err err = {0};
	int rc = offcpu_options_read(&o, argc, argv, &err);

	if (rc == 1) {
		fputs(offcpu_help, stdout);
		rc = cmd_printed();
	} else if (rc < 0) {
		rc = cmd_misused(argv[0], err.msg);
	} else {
		name_options_open(&o.view.naming);
		rc = run(&o, &err);
		if (rc == -EPIPE) /* the reader is gone, and a message is of no use */
			raise(SIGPIPE);
		if (rc < 0) {
			cmd_complain(err.msg);
			rc = EXIT_NOTHING;
		}
		name_options_deinit(&o.view.naming);
	}
	offcpu_options_deinit(&o);
	return rc;
}
