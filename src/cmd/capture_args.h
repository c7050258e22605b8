/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_CAPTURE_ARGS_H
#define STAKEOUT_CMD_CAPTURE_ARGS_H

#include <getopt.h>
#include <stdbool.h>

#include "base/err.h"
#include "capture/capture.h"
#include "cmd/process_args.h"
#include "cmd/view.h"

/* Which processes are captured, and how: what the commands that look at processes have in common. */
struct capture_args {
	struct capture_options capture;
	bool ptrace;
	struct process_args processes;
	struct tid_list tids; /* of these threads only */
};

enum {
	CAPTURE_OPTION_FIRST = 3000,
	CAPTURE_STOP,
	CAPTURE_PTRACE,
	CAPTURE_PROC_MEM,
	CAPTURE_STACK_SIZE,
	CAPTURE_STOP_TIMEOUT,
	CAPTURE_SOURCE,
	CAPTURE_CHILDREN,
	CAPTURE_WINDOW,
	CAPTURE_WINDOW_LINGERS,
};

#define CAPTURE_SHORT_OPTIONS "p:a"
/* clang-format off */
/* The last two are for tests: a window that lasts as long as it may, and a rung that is forced. */
#define CAPTURE_LONG_OPTIONS                                             \
	{"pid", required_argument, NULL, 'p'},                           \
	{"all", no_argument, NULL, 'a'},                                 \
	{"children", no_argument, NULL, CAPTURE_CHILDREN},               \
	{"stop", required_argument, NULL, CAPTURE_STOP},                 \
	{"proc-mem", no_argument, NULL, CAPTURE_PROC_MEM},               \
	{"stack-size", required_argument, NULL, CAPTURE_STACK_SIZE},     \
	{"stop-timeout", required_argument, NULL, CAPTURE_STOP_TIMEOUT}, \
	{"window", required_argument, NULL, CAPTURE_WINDOW},             \
	{"window-lingers", no_argument, NULL, CAPTURE_WINDOW_LINGERS},   \
	{"source", required_argument, NULL, CAPTURE_SOURCE}
/* clang-format on */

#define CAPTURE_WHICH_HELP                                                      \
	"  -a, --all              all processes of a name that several have\n" \
	"      --children         also processes that these have started\n"
#define CAPTURE_HOW_HELP                                                               \
	"      --window TIME      how long CPUs are taken at most (1ms)\n"                \
	"      --stop-timeout MS  how long a thread gets to stop (1000)\n"                \
	"      --stack-size BYTES most to copy of one stack; suffixes k, m (8m)\n"        \
	"      --proc-mem         read /proc/PID/mem instead of process_vm_readv\n"

void capture_args_init(struct capture_args *args);
void capture_args_deinit(struct capture_args *args);

/* Takes one option. 1: taken, 0: not one of these, -EINVAL: its value is wrong (said in err). */
int capture_args_option(struct capture_args *args, int opt, const char *value, struct err *err);

/* The processes that stand behind the options. -EINVAL when there is none, or options exclude each other. */
int capture_args_finish(struct capture_args *args, int n, char **words, struct err *err);

/* The same for commands that tell what threads wait for. */
int capture_args_finish_waits(struct capture_args *args, int n, char **words, struct err *err);

/*
 * The processes as they are now; what is not there goes to `missing`, as sentences. At most CAPTURE_TOGETHER of them can be captured
 * in one instant.
 */
enum { CAPTURE_TOGETHER = 64 };
int capture_args_find(const struct capture_args *args, struct err *err, struct process_ids *out, struct notes *missing);

/* Captures them: together if that can be, else one after the other. Each has an outcome of its own. */
void capture_args_take(const struct capture_args *args, const struct view_options *view, struct tracing_job *jobs, size_t n);

/* Captures the processes and shows them. The exit code; `command` is how it is called in messages. */
int capture_args_show(const char *command, const struct capture_args *args, struct view *view);

#endif
