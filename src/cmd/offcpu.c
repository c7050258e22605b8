/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/offcpu_events.h"
#include "cmd/offcpu_options.h"
#include "offcpu/recording.h"
#include "offcpu/sampler.h"
#include "offcpu/tables.h"
#include "proc/process.h"
#include "report/offcpu.h"

enum {
	LIVE_LINE_NS = 250000000,
	END_TRIES = 100, /* 10 ms each, until a command that ignores SIGTERM is killed */
	RING_BYTES = 8 << 20, /* for stacks that are new */
	EVENTS_BYTES = 16 << 20,
};

/* A command that waits to be let go, so that nothing of it is missed. */
struct child {
	pid_t pid;  /* 0: there is none */
	int go;     /* a byte lets the command start; closing it ends it */
	int failed; /* gives an errno when it could not be executed, and ends when it is */
	bool ended;
	int status;
};

static int start_child(char **command, const sigset_t *mask, struct child *child, struct err *err)
{
	int go[2], failed[2], code;
	ssize_t n;
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) < 0)
		return err_set(err, errno, "starting %s: %s", command[0], strerror(errno));
	child->go = go[1];
	if (pipe2(failed, O_CLOEXEC) < 0) {
		close(go[0]);
		return err_set(err, errno, "starting %s: %s", command[0], strerror(errno));
	}
	child->failed = failed[0];
	child->pid = fork();
	if (child->pid == 0) {
		close(go[1]);
		sigprocmask(SIG_SETMASK, mask, NULL);
		do
			n = read(go[0], &byte, 1);
		while (n < 0 && errno == EINTR);
		if (n != 1)
			_exit(126); /* the recording could not begin */
		execvp(command[0], command);
		code = errno;
		_exit(write(failed[1], &code, sizeof(code)) == sizeof(code) ? 127 : 126);
	}
	code = errno;
	close(go[0]);
	close(failed[1]);
	if (child->pid > 0)
		return 0;
	child->pid = 0;
	return err_set(err, code, "starting %s: %s", command[0], strerror(code));
}

/* Lets the command go. */
static int release_child(struct child *child, const char *name, struct err *err)
{
	ssize_t n;
	int code;

	n = send(child->go, "", 1, MSG_NOSIGNAL); /* somebody may have killed it by now */
	close(steal_fd(&child->go));
	if (n != 1)
		return err_set(err, ECHILD, "%s ended before it was started", name);
	if (read(child->failed, &code, sizeof(code)) != sizeof(code))
		return 0;
	return err_set(err, code, "%s: %s", name, strerror(code));
}

static bool child_has_ended(struct child *child)
{
	if (child->pid > 0 && !child->ended && waitpid(child->pid, &child->status, WNOHANG) == child->pid)
		child->ended = true;
	return child->ended;
}

static void end_child(struct child *child)
{
	if (child->go >= 0)
		close(steal_fd(&child->go));
	if (child->failed >= 0)
		close(steal_fd(&child->failed));
	if (child->pid > 0 && !child->ended) {
		kill(child->pid, SIGTERM);
		for (int i = 0; i < END_TRIES && !child_has_ended(child); i++)
			nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		if (!child->ended) {
			kill(child->pid, SIGKILL);
			waitpid(child->pid, &child->status, 0);
		}
	}
}

static struct recording_options recording_options(const struct offcpu_options *o, const struct child *child)
{
	static const enum offcpu_rung rungs[] = {
		[OFFCPU_SOURCE_AUTO] = OFFCPU_RUNG_AUTO,     [OFFCPU_SOURCE_SCHED_EXIT] = OFFCPU_RUNG_SCHED_EXIT,
		[OFFCPU_SOURCE_KPROBE] = OFFCPU_RUNG_KPROBE, [OFFCPU_SOURCE_SWITCH] = OFFCPU_RUNG_SWITCH,
		[OFFCPU_SOURCE_PROC] = OFFCPU_RUNG_AUTO, /* none is taken */
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
				.only_new = child->pid != 0, /* the command waits for us: that is none of its own waits */
				.events = o->events,
				.sleeping = o->states & OFFCPU_WANT_S,
				.uninterruptible = o->states & OFFCPU_WANT_D,
				.runnable = o->states & OFFCPU_WANT_R,
				.ring_bytes = o->events ? EVENTS_BYTES : RING_BYTES,
				.max_mappings = TABLES_MAX_MAPPINGS,
			},
		.pids = child->pid ? &child->pid : o->pids.data,
		.npids = child->pid ? 1 : o->pids.len,
		.by_thread = o->threads,
		.names = {.demangle = !o->view.no_demangle, .symbols = o->view.naming.symbols},
	};
}

static struct sampler_options sampler_options(const struct recording_options *from, const char *why)
{
	return (struct sampler_options){
		.pids = from->pids,
		.npids = from->npids,
		.all_processes = from->probe.all_processes,
		.children = from->probe.children,
		.by_thread = from->by_thread,
		.kernel_stacks = from->probe.kernel_stacks,
		.user_stacks = from->probe.user_stacks,
		.sleeping = from->probe.sleeping,
		.uninterruptible = from->probe.uninterruptible,
		.wakers = from->probe.wakers,
		.min_ns = from->probe.min_ns,
		.max_ns = from->probe.max_ns,
		.why = why,
		.names = from->names,
	};
}

/* One of the two is set: waits as BPF tells them, or as they are seen in /proc. */
struct session {
	struct recording *recording;
	struct sampler *sampler;
};

static void end_session(struct session *session)
{
	recording_destroy(session->recording);
	sampler_destroy(session->sampler);
}

/* A process that is not there is an error, whatever else could be recorded. */
static int check_processes(const struct recording_options *options, struct err *err)
{
	for (size_t i = 0; i < options->npids; i++) {
		struct process process;
		int rc = process_open(options->pids[i], err, &process);

		if (rc < 0)
			return rc;
		process_close(&process);
	}
	return 0;
}

/* Where there is no BPF waits are estimated, unless what is wanted cannot be had that way. */
static int start_session(const struct offcpu_options *o, const struct child *child, struct session *out,
			 struct err *err)
{
	const struct recording_options options = recording_options(o, child);
	struct sampler_options sampling;
	struct err why = {0};
	int rc = check_processes(&options, err);

	if (rc < 0)
		return rc;
	if (o->source != OFFCPU_SOURCE_PROC) {
		rc = recording_start(&options, &why, &out->recording);
		if (rc == 0)
			return 0;
		if (rc == -ENOMEM || o->source != OFFCPU_SOURCE_AUTO)
			return err_set(err, -rc, "%s", why.msg);
		if (o->events)
			return err_set(err, -rc, "%s; --events needs BPF", why.msg);
	}
	sampling = sampler_options(&options, why.msg[0] ? why.msg : NULL);
	rc = sampler_start(&sampling, err, &out->sampler);
	if (rc == -EINVAL && why.msg[0])
		return err_set(err, -rc, "%s", why.msg); /* that is what kept from the better way */
	return rc;
}

static struct recording_progress session_progress(const struct session *session)
{
	struct sampler_progress progress;

	if (session->recording)
		return recording_progress(session->recording);
	progress = sampler_progress(session->sampler);
	return (struct recording_progress){.waits = progress.waits, .lost = progress.lost};
}

static void stop_session(struct session *session)
{
	if (session->recording)
		recording_stop(session->recording);
	else
		sampler_stop(session->sampler);
}

static int finish_session(struct session *session, struct err *err, struct offcpu_profile *out)
{
	return session->recording ? recording_finish(session->recording, err, out)
				  : sampler_finish(session->sampler, err, out);
}

static void show_live_line(const struct session *session, uint64_t now, uint64_t end)
{
	struct recording_progress progress = session_progress(session);

	if (end)
		fprintf(stderr, "\r\033[K%.0f s left, ", end > now ? (double)(end - now) / NS_PER_S : 0);
	else
		fputs("\r\033[Krecording, Ctrl-C ends; ", stderr);
	fprintf(stderr, "%" PRIu64 " waits, %" PRIu64 " lost", progress.waits, progress.lost);
	fflush(stderr);
}

/* Until the time is over, the command has ended, nobody reads the events, or somebody presses Ctrl-C. */
static void record(const struct offcpu_options *o, struct session *session, struct child *child,
		   const struct event_writer *writer, const sigset_t *signals)
{
	uint64_t start = monotonic_ns(), end = o->duration_ns ? start + o->duration_ns : 0;
	bool live = isatty(STDERR_FILENO);

	for (;;) {
		uint64_t now = monotonic_ns(), wait = LIVE_LINE_NS;
		struct timespec timeout;
		int sig;

		if ((end && now >= end) || child_has_ended(child) || !event_writer_works(writer))
			break;
		if (live)
			show_live_line(session, now, end);
		if (end && end - now < wait)
			wait = end - now;
		timeout = ns_to_timespec(wait);
		sig = sigtimedwait(signals, NULL, &timeout);
		if (sig == SIGINT || sig == SIGTERM)
			break;
	}
	stop_session(session);
	if (live)
		fputs("\r\033[K", stderr);
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

/* The folded format has no place for them. */
static void tell_losses(const struct offcpu_profile *profile)
{
	for (size_t i = 0; i < profile->losses.len; i++)
		if (profile->losses.data[i].count)
			fprintf(stderr, "stakeout: lost: %" PRIu64 " %s\n", profile->losses.data[i].count,
				profile->losses.data[i].name);
	for (size_t i = 0; i < profile->notes.len; i++)
		fprintf(stderr, "stakeout: %s\n", profile->notes.data[i]);
}

static int write_profile(const struct offcpu_options *o, const struct offcpu_profile *profile, FILE *out,
			 struct err *err)
{
	const char *no_color = getenv("NO_COLOR");
	struct offcpu_report_options options = {.verbose = o->view.report.verbose, .hide_idle = o->hide_idle, .top = o->top};
	int rc;

	options.color = o->view.color == COLOR_ALWAYS ||
			(o->view.color == COLOR_AUTO && isatty(fileno(out)) && !(no_color && *no_color));
	if (o->view.json)
		rc = report_offcpu_json(profile, &options, out);
	else if (o->folded)
		rc = report_offcpu_folded(profile, &options, out);
	else
		rc = report_offcpu_text(profile, &options, out);
	if (o->folded)
		tell_losses(profile);
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

static void end_writer(struct event_writer *writer)
{
	event_writer_stop(writer, NULL);
}

static int run(struct offcpu_options *o, struct err *err)
{
	_cleanup_(end_session) struct session session = {0};
	_cleanup_(offcpu_profile_deinit) struct offcpu_profile profile = {0};
	_cleanup_(end_writer) struct event_writer writer = {0};
	_cleanup_(end_child) struct child child = {.go = -1, .failed = -1};
	sigset_t signals, before;
	FILE *events = NULL, *report = NULL;
	int rc = 0;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	/* What cannot be written is said before the recording, not after it. */
	if (o->events)
		rc = open_file(o->events_path ? o->events_path : o->view.output, &events, err);
	if (rc == 0 && (!o->events || o->events_path))
		rc = open_file(o->view.output, &report, err);
	if (rc == 0 && o->command)
		rc = start_child(o->command, &before, &child, err);
	if (rc == 0)
		rc = start_session(o, &child, &session, err);
	if (rc == 0)
		rc = event_writer_start(&writer, events, session.recording, err);
	if (rc == 0 && child.pid)
		rc = release_child(&child, o->command[0], err);
	if (rc < 0)
		return rc;
	record(o, &session, &child, &writer, &signals);
	end_child(&child);
	sigprocmask(SIG_SETMASK, &before, NULL); /* a second Ctrl-C ends us, whoever we wait for */
	rc = event_writer_stop(&writer, err);
	if (rc == 0)
		rc = finish_session(&session, err, &profile);
	if (rc == 0)
		rc = event_writer_end(&writer, &profile, err);
	if (close_file(events) < 0 && rc == 0)
		rc = err_set(err, EIO, "the events cannot be written");
	if (rc == 0 && report)
		rc = write_profile(o, &profile, report, err);
	if (close_file(report) < 0 && rc >= 0)
		rc = err_set(err, EIO, "the report cannot be written");
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
		if (rc == -EPIPE) /* nobody reads any more: nobody needs words */
			raise(SIGPIPE);
		if (rc < 0) {
			fprintf(stderr, "stakeout: %s\n", err.msg);
			rc = EXIT_NOTHING;
		}
		naming_deinit(&o.view.naming);
	}
	offcpu_options_deinit(&o);
	return rc;
}
