/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/offcpu_options.h"
#include "offcpu/recording.h"
#include "report/offcpu.h"

enum {
	LIVE_LINE_MS = 250,
	EVENTS_MS = 100,
	RING_BYTES = 16 << 20,
	MAX_MAPPINGS = 1 << 18,
};

/* A command that waits to be let go, so that nothing of it is missed. */
struct child {
	pid_t pid; /* 0: there is none */
	int go;	   /* closing it lets the command start */
	bool ended;
	int status;
};

static int start_child(char **command, const sigset_t *mask, struct child *child, struct err *err)
{
	int pipe_fds[2];
	char byte;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return err_set(err, errno, "starting %s: %s", command[0], strerror(errno));
	child->pid = fork();
	if (child->pid < 0) {
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		child->pid = 0;
		return err_set(err, errno, "starting %s: %s", command[0], strerror(errno));
	}
	if (child->pid == 0) {
		close(pipe_fds[1]);
		sigprocmask(SIG_SETMASK, mask, NULL);
		while (read(pipe_fds[0], &byte, 1) < 0 && errno == EINTR)
			;
		execvp(command[0], command);
		fprintf(stderr, "stakeout: %s: %s\n", command[0], strerror(errno));
		_exit(127);
	}
	close(pipe_fds[0]);
	child->go = pipe_fds[1];
	return 0;
}

static void end_child(struct child *child)
{
	if (child->go >= 0)
		close(steal_fd(&child->go));
	if (child->pid > 0 && !child->ended) {
		kill(child->pid, SIGTERM);
		waitpid(child->pid, &child->status, 0);
	}
}

static bool child_has_ended(struct child *child)
{
	if (child->pid > 0 && !child->ended && waitpid(child->pid, &child->status, WNOHANG) == child->pid)
		child->ended = true;
	return child->ended;
}

static struct recording_options recording_options(const struct offcpu_options *o, const struct child *child)
{
	static const enum offcpu_rung rungs[] = {
		[OFFCPU_SOURCE_AUTO] = OFFCPU_RUNG_AUTO,
		[OFFCPU_SOURCE_SCHED_EXIT] = OFFCPU_RUNG_SCHED_EXIT,
		[OFFCPU_SOURCE_KPROBE] = OFFCPU_RUNG_KPROBE,
		[OFFCPU_SOURCE_SWITCH] = OFFCPU_RUNG_SWITCH,
	};

	return (struct recording_options){
		.probe =
			{
				.rung = rungs[o->source],
				.min_ns = o->min_ns,
				.max_ns = o->max_ns,
				.all_processes = o->all,
				.children = o->children,
				.kernel_stacks = o->kernel,
				.user_stacks = o->user,
				.wakers = o->wakers,
				.sleeping = o->states & OFFCPU_WANT_S,
				.uninterruptible = o->states & OFFCPU_WANT_D,
				.runnable = o->states & OFFCPU_WANT_R,
				.ring_bytes = RING_BYTES,
				.max_mappings = MAX_MAPPINGS,
			},
		.pids = child->pid ? &child->pid : o->pids.data,
		.npids = child->pid ? 1 : o->pids.len,
		.by_thread = o->threads,
		.events = o->events,
		.names = {.demangle = !o->view.no_demangle, .symbols = o->view.naming.symbols},
	};
}

static void show_live_line(struct recording *recording, uint64_t now, uint64_t end)
{
	struct recording_progress progress = recording_progress(recording);

	if (end)
		fprintf(stderr, "\r\033[K%.0f s left, ", end > now ? (double)(end - now) / NS_PER_S : 0);
	else
		fputs("\r\033[Krecording, Ctrl-C ends; ", stderr);
	fprintf(stderr, "%" PRIu64 " waits, %" PRIu64 " lost", progress.waits, progress.lost);
	fflush(stderr);
}

static void write_event(void *arg, const struct offcpu_event *event)
{
	report_offcpu_event(event, arg);
}

static bool write_events(struct recording *recording, FILE *out)
{
	return !out || (recording_take_events(recording, write_event, out) && fflush(out) == 0);
}

/* Until the time is over, the command has ended, or somebody presses Ctrl-C. */
static bool record(const struct offcpu_options *o, struct recording *recording, struct child *child,
		   const sigset_t *signals, FILE *events)
{
	uint64_t start = monotonic_ns(), end = o->duration_ns ? start + o->duration_ns : 0;
	bool live = isatty(STDERR_FILENO);

	for (;;) {
		uint64_t now = monotonic_ns(), wait = (uint64_t)(events ? EVENTS_MS : LIVE_LINE_MS) * 1000000;
		struct timespec timeout;
		int sig;

		if ((end && now >= end) || child_has_ended(child))
			break;
		if (live)
			show_live_line(recording, now, end);
		if (end && end - now < wait)
			wait = end - now;
		timeout = ns_to_timespec(wait);
		sig = sigtimedwait(signals, NULL, &timeout);
		if (sig == SIGINT || sig == SIGTERM)
			break;
		if (!write_events(recording, events))
			return false;
	}
	recording_stop(recording);
	if (live)
		fputs("\r\033[K", stderr);
	return write_events(recording, events);
}

static int open_file(const char *path, FILE **out, struct err *err)
{
	*out = !path || strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
	return *out ? 0 : err_set(err, errno, "%s: %s", path, strerror(errno));
}

static int close_file(FILE *f)
{
	if (!f || f == stdout)
		return 0;
	return fclose(f) == 0 ? 0 : -errno;
}

static int write_profile(const struct offcpu_options *o, const struct offcpu_profile *profile, struct err *err)
{
	const char *no_color = getenv("NO_COLOR");
	FILE *out;
	struct offcpu_report_options options = {.verbose = o->view.report.verbose, .hide_idle = o->hide_idle};
	int rc = open_file(o->view.output, &out, err), closed;

	if (rc < 0)
		return rc;
	options.color = o->view.color == COLOR_ALWAYS ||
			(o->view.color == COLOR_AUTO && isatty(fileno(out)) && !(no_color && *no_color));
	if (o->view.json)
		rc = report_offcpu_json(profile, &options, out);
	else if (o->folded)
		rc = report_offcpu_folded(profile, &options, out);
	else
		rc = report_offcpu_text(profile, &options, out);
	closed = close_file(out);
	if (rc == 0)
		rc = closed;
	return rc < 0 ? err_set(err, -rc, "writing the output: %s", strerror(-rc)) : 0;
}

static bool is_complete(const struct offcpu_profile *profile)
{
	for (size_t i = 0; i < profile->losses.len; i++)
		if (profile->losses.data[i].count)
			return false;
	for (size_t i = 0; i < profile->rows.len; i++)
		if (profile->rows.data[i].user_error || profile->rows.data[i].kernel_error)
			return false;
	return !profile->estimate;
}

DEFINE_CLEANUP(recording, struct recording *, recording_destroy)

static int run(struct offcpu_options *o, struct err *err)
{
	_cleanup_(cleanup_recording) struct recording *recording = NULL;
	_cleanup_(offcpu_profile_deinit) struct offcpu_profile profile = {0};
	_cleanup_(end_child) struct child child = {.go = -1};
	struct recording_options options;
	sigset_t signals, before;
	FILE *events = NULL;
	int rc = 0;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	if (o->command)
		rc = start_child(o->command, &before, &child, err);
	options = recording_options(o, &child);
	if (rc == 0)
		rc = recording_start(&options, err, &recording);
	if (rc < 0)
		return rc;
	if (child.go >= 0)
		close(steal_fd(&child.go));
	if (o->events) {
		rc = open_file(o->events_path ? o->events_path : o->view.output, &events, err);
		if (rc == 0 && report_offcpu_events_begin(recording_method(recording), false, events) < 0)
			rc = err_set(err, EIO, "the events cannot be written");
	}
	if (rc == 0 && !record(o, recording, &child, &signals, events))
		rc = err_set(err, EIO, "the events cannot be written");
	if (rc == 0)
		rc = recording_finish(recording, err, &profile);
	if (rc == 0 && events && report_offcpu_events_end(&profile, events) < 0)
		rc = err_set(err, EIO, "the events cannot be written");
	if (close_file(events) < 0 && rc == 0)
		rc = err_set(err, EIO, "the events cannot be written");
	if (rc == 0 && (!o->events || o->events_path))
		rc = write_profile(o, &profile, err);
	return rc < 0 ? rc : is_complete(&profile) ? EXIT_COMPLETE : EXIT_INCOMPLETE;
}

int cmd_offcpu(int argc, char **argv)
{
	struct offcpu_options o;
	struct err err = {0};
	int rc = offcpu_options_read(&o, argc, argv, &err);

	if (rc == 1) {
		fputs(offcpu_help, stdout);
		rc = EXIT_COMPLETE;
	} else if (rc < 0) {
		fprintf(stderr, "stakeout offcpu: %s\nTry 'stakeout offcpu --help'.\n", err.msg);
		rc = EXIT_USAGE;
	} else {
		naming_open(&o.view.naming);
		rc = run(&o, &err);
		if (rc < 0) {
			fprintf(stderr, "stakeout: %s\n", err.msg);
			rc = EXIT_NOTHING;
		}
		naming_deinit(&o.view.naming);
	}
	offcpu_options_deinit(&o);
	return rc;
}
