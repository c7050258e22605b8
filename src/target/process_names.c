/* SPDX-License-Identifier: MIT */
#include "target/process_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/cgroup.h"
#include "proc/family.h"
#include "proc/process.h"
#include "proc/task_status.h"
#include "target/helper.h"
#include "target/patience.h"
#include "target/script.h"

enum {
	MAX_COMMAND_LINE = 4096,
	MAX_ARGUMENTS = 128, /* of which the name of a script is one */
	MAX_ANCESTORS = 64,
};

/* The words of a command line, each with its NUL. */
struct arguments {
	char *text; /* owned */
	size_t len;
	const char *words[MAX_ARGUMENTS];
	size_t n;
};

static void arguments_deinit(struct arguments *arguments)
{
	free(arguments->text);
}

static void split_words(struct arguments *arguments)
{
	for (size_t at = 0; at < arguments->len && arguments->n < MAX_ARGUMENTS;
	     at += strlen(arguments->text + at) + 1)
		arguments->words[arguments->n++] = arguments->text + at;
}

/* The words become one text, with spaces between them. */
static void join_words(struct arguments *arguments)
{
	for (size_t i = 0; i < arguments->len; i++)
		if (!arguments->text[i])
			arguments->text[i] = ' ';
	while (arguments->len && arguments->text[arguments->len - 1] == ' ')
		arguments->text[--arguments->len] = '\0';
}

static void run_read(void *arg, uint8_t *window, struct helper_reply *reply)
{
	const int *dir_fd = arg;
	ssize_t len = process_read_file(*dir_fd, "cmdline", (char *)window, MAX_COMMAND_LINE);

	reply->rc = len < 0 ? (int)len : 0;
	reply->len = len < 0 ? 0 : (uint64_t)len + 1;
}

/*
 * The command line is in the memory of the process, whose map may be locked for as long as it waits for a dead file
 * system. That must not keep us from finding another one, so a helper reads it.
 */
static int read_arguments(const struct process *process, struct arguments *out)
{
	int dir_fd = process->dir_fd;
	const struct helper_task task = {
		.run = run_read, .arg = &dir_fd, .window = MAX_COMMAND_LINE, .keep = {dir_fd, -1, -1, -1}};
	struct helper_reply reply;
	uint8_t *bytes = NULL;
	int rc = helper_run(&task, &reply, &bytes);

	if (rc < 0 || !bytes || reply.len < 2) {
		free(bytes);
		return rc < 0 ? rc : -ENOENT;
	}
	*out = (struct arguments){.text = (char *)bytes, .len = reply.len - 1};
	split_words(out);
	return 0;
}

/* The command lines of several processes, each in a slot of the window with its length before it. */
struct lines_task {
	const struct process_program *programs;
	size_t n;
};

struct line_slot {
	uint32_t len;
	char text[MAX_COMMAND_LINE];
};

static void run_read_lines(void *arg, uint8_t *window, struct helper_reply *reply)
{
	const struct lines_task *task = arg;
	struct line_slot *slots = (struct line_slot *)window;

	for (size_t i = 0; i < task->n; i++) {
		ssize_t len = process_read_arguments(task->programs[i].pid, slots[i].text, sizeof(slots[i].text));

		slots[i].len = len > 0 ? (uint32_t)len : 0;
	}
	reply->len = task->n * sizeof(*slots);
}

/* For free(); NULL: they are not known. */
static struct line_slot *read_lines(const struct process_program *programs, size_t n)
{
	struct lines_task lines = {programs, n};
	const struct helper_task task = {
		.run = run_read_lines, .arg = &lines, .window = n * sizeof(struct line_slot), .keep = {-1, -1, -1, -1}};
	const bool asked = patience_left() > 0;
	struct helper_reply reply;
	uint8_t *bytes = NULL;
	int rc = helper_run(&task, &reply, &bytes);

	if (rc == -ETIMEDOUT && asked)
		patience_complain("a process did not give its command line in time; those of all are left out "
				  "(--patience gives it longer)");
	if (rc < 0) {
		free(bytes);
		return NULL;
	}
	return (struct line_slot *)bytes;
}

static int add(struct process_names *names, struct process_id id, const char *name)
{
	if (!name)
		return -ENOMEM;
	for (size_t i = names->len; i-- > 0 && names->data[i].id.pid == id.pid;)
		if (names->data[i].name == name)
			return 0;
	return vec_push(names, (struct process_name){.id = id, .name = name}) ? 0 : -ENOMEM;
}

static const char *path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int add_names(const struct process *process, struct arena *arena, struct process_names *out)
{
	_cleanup_(arguments_deinit) struct arguments arguments = {0};
	const char *exe, *program, *script;
	struct process_info info;
	struct process_id id;
	int rc;

	if (process_info(process, &info) < 0 || process_has_ended(process))
		return 0;
	id = (struct process_id){process->pid, info.start_time};
	rc = add(out, id, arena_intern(arena, info.comm));
	if (rc < 0 || info.kernel_thread)
		return rc;
	exe = process_exe(process, arena);
	program = exe ? path_name(exe) : info.comm;
	if (exe)
		rc = add(out, id, arena_intern(arena, program));
	if (rc < 0 || !script_has_interpreter(program) || read_arguments(process, &arguments) < 0)
		return rc;
	script = script_name(program, arguments.words, arguments.n);
	return script && *script ? add(out, id, arena_intern(arena, script)) : 0;
}

/* This process, and those that it descends from. */
struct ancestry {
	pid_t pids[MAX_ANCESTORS];
	size_t n;
};

static void ancestry_find(struct ancestry *ancestry)
{
	for (pid_t pid = process_self(); pid > 0 && ancestry->n < MAX_ANCESTORS; pid = process_parent(pid))
		ancestry->pids[ancestry->n++] = pid;
}

static bool ancestry_has(const struct ancestry *ancestry, pid_t pid)
{
	for (size_t i = 0; i < ancestry->n; i++)
		if (ancestry->pids[i] == pid)
			return true;
	return false;
}

int process_names_list(struct arena *arena, struct err *err, struct process_names *out)
{
	struct ancestry ancestry = {0};
	struct tid_list pids = {0};
	int rc = process_list_all(&pids);

	ancestry_find(&ancestry);
	for (size_t i = 0; rc == 0 && i < pids.len; i++) {
		struct process process;

		if (ancestry_has(&ancestry, pids.data[i]) || process_open(pids.data[i], NULL, &process) < 0)
			continue;
		rc = add_names(&process, arena, out);
		process_close(&process);
	}
	vec_deinit(&pids);
	return rc < 0 ? err_set(err, -rc, "listing the processes: %s", strerror(-rc)) : 0;
}

/* The words with spaces between them; where there are none, as of a kernel thread, the name in brackets. */
static const char *command_line(const struct process *process, const struct process_info *info, struct arena *arena)
{
	_cleanup_(arguments_deinit) struct arguments arguments = {0};

	if (read_arguments(process, &arguments) < 0)
		return arena_printf(arena, "[%s]", info->comm);
	join_words(&arguments);
	return arena_intern(arena, arguments.text);
}

static uint64_t start_of(const struct process_info *info)
{
	return info->start_time * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

static uint64_t age_of(const struct process_info *info)
{
	uint64_t now = clock_ns(CLOCK_BOOTTIME), start = start_of(info);

	return start < now ? now - start : 0;
}

static void read_program(pid_t pid, struct arena *arena, struct process_program *out)
{
	struct process process;
	struct process_info info;

	*out = (struct process_program){0};
	if (process_open(pid, NULL, &process) < 0)
		return;
	if (process_info(&process, &info) == 0 && !process_has_ended(&process)) {
		out->pid = pid;
		out->start_ns = start_of(&info);
		out->name = arena_intern(arena, info.comm);
		out->file = process_exe(&process, arena);
		out->inner_pid = process_inner_pid(&process);
		cgroup_read(&process, arena, &out->container);
	}
	process_close(&process);
}

static void take_script(const struct arguments *arguments, const char *program, struct arena *arena,
			struct process_program *out)
{
	const char *script = script_name(program, arguments->words, arguments->n);
	size_t word = arguments->n;

	if (!script || !*script)
		return;
	while (word-- > 0 && arguments->words[word] > script)
		;
	out->script = arena_intern(arena, script);
	out->script_word = arena_intern(arena, arguments->words[word]);
}

static void take_line(struct line_slot *slot, struct arena *arena, struct process_program *out)
{
	struct arguments arguments = {.text = slot->text, .len = slot->len};
	const char *program = out->file ? path_name(out->file) : NULL;

	if (!slot->len || slot->len >= sizeof(slot->text))
		return;
	slot->text[slot->len] = '\0';
	split_words(&arguments);
	if (slot->len == sizeof(slot->text) - 1) /* the last one may be cut */
		arguments.n--;
	if (program && script_has_interpreter(program))
		take_script(&arguments, program, arena, out);
	join_words(&arguments);
	slot->text[PROCESS_LINE_BYTES - 1] = '\0';
	out->command_line = *arguments.text ? arena_intern(arena, arguments.text) : NULL;
}

size_t process_programs(const pid_t *pids, size_t n, struct arena *arena, bool *lines, struct process_program *out)
{
	struct line_slot *slots;
	size_t living = 0;

	for (size_t i = 0; i < n; i++) {
		read_program(pids[i], arena, &out[living]);
		living += out[living].pid != 0;
	}
	slots = living && *lines ? read_lines(out, living) : NULL;
	*lines = *lines && (slots || !living);
	for (size_t i = 0; slots && i < living; i++)
		take_line(&slots[i], arena, &out[i]);
	free(slots);
	return living;
}

int process_portrait(pid_t pid, struct arena *arena, struct process_portrait *out)
{
	struct process process;
	struct process_info info;
	struct task_status status;
	int rc = process_open(pid, NULL, &process);

	if (rc < 0)
		return -ESRCH;
	*out = (struct process_portrait){.pid = pid};
	rc = process_info(&process, &info);
	if (rc == 0)
		rc = task_status_read(process.dir_fd, "status", &status);
	if (rc == 0) {
		out->uid = status.uids[TASK_ID_EFFECTIVE];
		out->threads = process_count_threads(&process);
		out->age_ns = age_of(&info);
		out->command_line = command_line(&process, &info, arena);
	}
	process_close(&process);
	return rc < 0 || out->threads < 0 ? -ESRCH : out->command_line ? 0 : -ENOMEM;
}
