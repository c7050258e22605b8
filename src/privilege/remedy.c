/* SPDX-License-Identifier: MIT */
#include "privilege/remedy.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "privilege/broker.h"
#include "privilege/capabilities.h"
#include "privilege/file_rights.h"

#define FOR_BPF (RIGHT(CAP_BPF) | RIGHT(CAP_PERFMON))

static const struct {
	uint64_t needs;
	const char *besides;
} remedies[] = {
	[REFUSED_NOTHING] = {0},
	[REFUSED_PTRACE] = {.needs = RIGHT(CAP_SYS_PTRACE)},
	[REFUSED_BPF] = {.needs = FOR_BPF},
	[REFUSED_KPROBE] = {FOR_BPF, "the kernel has to have CONFIG_KPROBE_EVENTS, and must not be locked down"},
	[REFUSED_STACKS] = {.needs = FOR_BPF | RIGHT(CAP_SYS_PTRACE)},
	[REFUSED_PROC_STACKS] = {.needs = RIGHT(CAP_SYS_ADMIN) | RIGHT(CAP_SYS_PTRACE)},
	[REFUSED_KERNEL_STACK] = {.needs = RIGHT(CAP_SYS_ADMIN)},
	[REFUSED_MAP_FILES] = {.needs = RIGHT(CAP_CHECKPOINT_RESTORE)},
	[REFUSED_MMAP_WATCH] = {.needs = RIGHT(CAP_PERFMON)},
	[REFUSED_KALLSYMS] = {RIGHT(CAP_SYSLOG), "where kernel.kptr_restrict is 2: sudo sysctl kernel.kptr_restrict=1"},
	[REFUSED_REALTIME] = {RIGHT(CAP_SYS_NICE),
			      "where the control group has no budget for it (cpu.rt_runtime_us): another control group"},
	[REFUSED_WINDOW] = {.needs = FOR_BPF | RIGHT(CAP_SYS_NICE)},
};

uint64_t remedy_needs(enum refused what)
{
	return remedies[what].needs;
}

const char *remedy_besides(enum refused what)
{
	return remedies[what].besides;
}

struct text {
	char *buf;
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(text->buf + text->len, REMEDY_SIZE - text->len, fmt, args);
	va_end(args);
	text->len += (size_t)len;
	if (text->len >= REMEDY_SIZE)
		text->len = REMEDY_SIZE - 1;
}

/* As engines want them: in capitals, without the first letters. */
static void add_names(struct text *text, uint64_t capabilities, const char *before, const char *between)
{
	const char *separator = "";
	char number[16];

	for (int i = 0; i <= CAP_LAST_CAP; i++) {
		const char *name = capability_name(i, number);

		if (!(capabilities & RIGHT(i)))
			continue;
		add(text, "%s%s", separator, before);
		for (name += strncmp(name, "cap_", 4) == 0 ? 4 : 0; *name; name++)
			add(text, "%c", toupper((unsigned char)*name));
		separator = between;
	}
}

/* Only root gets them: an engine gives other users none. */
static void add_container(struct text *text, uint64_t lacking, bool is_root)
{
	add(text, "start the container with ");
	add_names(text, lacking, "--cap-add=", " ");
	add(text, " (Kubernetes: capabilities: {add: [");
	add_names(text, lacking, "", ", ");
	add(text, "]})%s", is_root ? "" : ", and as root (runAsUser: 0)");
}

/* Yama's say, which is about one's own processes. */
static void add_scope(struct text *text, int scope)
{
	if (scope == 3)
		add(text, "restart the machine with kernel.yama.ptrace_scope below 3: it cannot be lowered while it runs");
	else if (scope > 0)
		add(text, "sudo sysctl kernel.yama.ptrace_scope=0 (it is %d)", scope);
	else
		add(text, "kernel.yama.ptrace_scope 0 is enough, as it is");
}

/*
 * Kernels of Debian's have a level above those of others, at which perf events, also those of kprobes, take CAP_SYS_ADMIN. Where it
 * is set on another kernel, CAP_PERFMON is enough, and who has it is not refused.
 */
static bool is_paranoid(enum refused what, const struct standing *standing)
{
	return (what == REFUSED_MMAP_WATCH || what == REFUSED_KPROBE) && standing->perf_paranoid > 2 &&
	       !(standing->capabilities & RIGHT(CAP_SYS_ADMIN));
}

bool remedy_is_forbidden(enum refused what, const struct standing *standing)
{
	return is_paranoid(what, standing) || (what == REFUSED_PTRACE && standing->ptrace_scope == 3);
}

const char *remedy_for(enum refused what, const struct standing *standing, char buf[static REMEDY_SIZE])
{
	const uint64_t lacking = remedies[what].needs & ~standing->capabilities;
	struct text text = {.buf = buf};
	char help[RIGHTS_HELP];

	buf[0] = '\0';
	if (standing->in_user_namespace) {
		add(&text, "run it on the host: in a user namespace these rights are worth nothing outside of it");
		return buf;
	}
	if (lacking && (standing->is_root || standing->is_filtered))
		add_container(&text, lacking, standing->is_root);
	else if (lacking)
		add(&text, "%s", rights_help(remedies[what].needs, help));
	if (is_paranoid(what, standing))
		add(&text, "%ssudo sysctl kernel.perf_event_paranoid=2 (it is %d)", lacking ? "; and " : "", standing->perf_paranoid);
	else if (remedies[what].besides)
		add(&text, "%s%s", lacking ? "; " : "", remedies[what].besides);
	if (what == REFUSED_PTRACE && (lacking || standing->ptrace_scope == 3)) {
		add(&text, "%s", lacking ? "; for your own processes: " : "");
		add_scope(&text, standing->ptrace_scope);
	}
	if (!text.len)
		add(&text, "a filter, a lockdown or a security module may be in the way: `stakeout doctor` tells");
	return buf;
}

static bool is_in_user_namespace(void)
{
	enum { FIRST = 0xEFFFFFFD }; /* part of the kernel's interface */
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino != FIRST;
}

static int read_setting(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[8] = "";

	return fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ? -1 : atoi(text);
}

void standing_read(struct standing *out)
{
	struct capabilities capabilities;

	capabilities_read(&capabilities);
	*out = (struct standing){
		.capabilities = capabilities.effective,
		.is_root = geteuid() == 0,
		.is_filtered = prctl(PR_GET_SECCOMP) > 0,
		.in_user_namespace = is_in_user_namespace(),
		.ptrace_scope = read_setting("/proc/sys/kernel/yama/ptrace_scope"),
		.perf_paranoid = read_setting("/proc/sys/kernel/perf_event_paranoid"),
	};
}

const char *remedy(enum refused what, char buf[static REMEDY_SIZE])
{
	struct standing standing = {.ptrace_scope = -1, .perf_paranoid = -1};

	if (!broker_is_there())
		standing_read(&standing);
	return remedy_for(what, &standing, buf);
}
