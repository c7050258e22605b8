/* SPDX-License-Identifier: MIT */
#include "doctor/doctor.h"

#include <errno.h>
#include <getopt.h>

#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/process_args.h"
#include "cmd/view.h"
#include "report/doctor.h"

static const char help[] =
	"Usage: stakeout doctor [OPTION…] [PROCESS]\n"
	"\n"
	"Tries all that stakeout can use on this machine, on a program of its own: what works, what does\n"
	"not and why, what results lack without it, and the command that would help. With a PROCESS (a pid\n"
	"or a name) it ends with what each command will do with that one, and what will be missing; nobody\n"
	"is stopped for it.\n"
	"\n"
	"      --json             one JSON document\n"
	"  -v, --verbose          how long each took, and why something fails that is not needed\n"
	DEBUG_HELP "  -h, --help             this help\n"
	"\n"
	"Exit status: 0 everything works (with a PROCESS: nothing of it will be missing), 1 nothing could be\n"
	"tried or there is no such process, 2 wrong usage, 3 something does not work.\n";

struct doctor_options {
	bool json;
	bool verbose;
	struct process_args processes;
};

/* 0 when none was asked about. */
static int find_pid(const struct process_args *args, struct err *err, pid_t *out)
{
	_cleanup_(notes_deinit) struct notes missing = {0};
	struct process_ids ids = {0};
	int rc = args->len ? process_args_find(args, err, &ids, &missing) : 0;

	*out = ids.len ? ids.data[0].pid : 0;
	if (rc == 0 && args->len && !ids.len)
		rc = err_set(err, ESRCH, "%s", missing.len ? missing.data[0] : "there is no such process");
	vec_deinit(&ids);
	return rc;
}

static void show(const struct diagnosis *diagnosis, const struct doctor_options *o)
{
	const struct text text = {.out = stdout, .color = view_has_color(&(struct view_options){.color = COLOR_AUTO}, stdout)};

	if (o->json)
		report_doctor_json(diagnosis, stdout);
	else
		report_doctor_text(diagnosis, &text, o->verbose);
}

static int diagnose(const struct doctor_options *o)
{
	struct arena *arena = arena_create();
	struct diagnosis diagnosis = {0};
	struct err err = {0};
	int code = EXIT_NOTHING;
	pid_t pid;

	if (!arena || find_pid(&o->processes, &err, &pid) < 0 || doctor_diagnose(pid, arena, &err, &diagnosis) < 0) {
		cmd_complain(arena ? err.msg : "out of memory");
	} else {
		show(&diagnosis, o);
		code = cmd_printed();
		if (code == EXIT_COMPLETE && !diagnosis_is_good(&diagnosis))
			code = EXIT_INCOMPLETE;
	}
	diagnosis_deinit(&diagnosis);
	arena_destroy(arena);
	return code;
}

/* -1 to go on; else the exit code. */
static int parse(int argc, char **argv, struct doctor_options *o)
{
	enum { OPT_JSON = 1 };
	static const struct option long_options[] = {
		{"json", no_argument, NULL, OPT_JSON},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct err err = {0};
	int opt;

	while ((opt = getopt_long(argc, argv, "vh", long_options, NULL)) != -1) {
		if (opt == '?')
			return cmd_misused(argv[0], "");
		if (opt == 'h') {
			fputs(help, stdout);
			return cmd_printed();
		}
		o->json |= opt == OPT_JSON;
		o->verbose |= opt == 'v';
	}
	if (argc - optind > 1)
		return cmd_misused(argv[0], "give one process, or none");
	if (optind < argc && process_args_add(&o->processes, argv[optind], &err) < 0)
		return cmd_misused(argv[0], err.msg);
	if (o->processes.len > 1)
		return cmd_misused(argv[0], "give one process, or none");
	return cmd_check_proc();
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_options o = {0};
	int code = parse(argc, argv, &o);

	if (code < 0)
		code = diagnose(&o);
	process_args_deinit(&o.processes);
	return code;
}
