/* SPDX-License-Identifier: MIT */
#include "doctor/rights.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "privilege/file_rights.h"
#include "proc/process.h"
#include "proc/task_status.h"

static const struct {
	int number;
	const char *name;
} capability_names[] = {
	{CAP_SYS_PTRACE, "sys_ptrace"},
	{CAP_SYS_ADMIN, "sys_admin"},
	{CAP_SYS_NICE, "sys_nice"},
	{CAP_SYSLOG, "syslog"},
	{CAP_PERFMON, "perfmon"},
	{CAP_BPF, "bpf"},
	{CAP_CHECKPOINT_RESTORE, "checkpoint_restore"},
};

static int read_setting(const char *path)
{
	char text[16];

	return process_read_file(AT_FDCWD, path, text, sizeof(text)) > 0 ? atoi(text) : -1;
}

static bool is_in_user_namespace(void)
{
	enum { FIRST = 0xEFFFFFFD }; /* part of the kernel's interface */
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino != FIRST;
}

/* "[none] integrity confidentiality" */
static bool is_locked_down(void)
{
	char text[64];

	return process_read_file(AT_FDCWD, "/sys/kernel/security/lockdown", text, sizeof(text)) > 0 && !strstr(text, "[none]");
}

void rights_read(struct rights *rights)
{
	_cleanup_close_ int self = -1;
	struct task_status status;

	*rights = (struct rights){
		.capabilities = task_status_read(AT_FDCWD, "/proc/self/status", &status) == 0 ? status.effective : 0,
		.in_user_namespace = is_in_user_namespace(),
		.is_root = geteuid() == 0,
		.is_filtered = prctl(PR_GET_SECCOMP) > 0,
		.is_locked_down = is_locked_down(),
		.ptrace_scope = read_setting("/proc/sys/kernel/yama/ptrace_scope"),
		.perf_event_paranoid = read_setting("/proc/sys/kernel/perf_event_paranoid"),
		.kptr_restrict = read_setting("/proc/sys/kernel/kptr_restrict"),
	};
	self = open("/proc/self", O_PATH | O_CLOEXEC);
	lsm_read(self, &rights->label);
}

/* "--cap-add=bpf --cap-add=perfmon" or "cap_bpf,cap_perfmon" */
static const char *list(uint64_t capabilities, const char *before, const char *between, struct arena *arena)
{
	const char *all = "";

	for (size_t i = 0; all && i < sizeof(capability_names) / sizeof(capability_names[0]); i++)
		if (capabilities & RIGHT(capability_names[i].number))
			all = arena_printf(arena, "%s%s%s%s", all, all[0] ? between : "", before, capability_names[i].name);
	return all ? all : "";
}

static const char *in_capitals(const char *names, struct arena *arena)
{
	char text[256];
	size_t n = 0;

	for (; names[n] && n + 1 < sizeof(text); n++)
		text[n] = (char)toupper((unsigned char)names[n]);
	return arena_intern_n(arena, text, n);
}

/* Engines take capabilities without their first letters. Only root gets them: an engine gives other users none. */
static const char *remedy_in_container(const struct rights *rights, uint64_t lacking, struct arena *arena)
{
	const char *options = list(lacking, "--cap-add=", " ", arena), *names = list(lacking, "", ", ", arena);

	return arena_printf(arena, "start the container with %s (Kubernetes: capabilities: {add: [%s]})%s", options,
			    in_capitals(names, arena), rights->is_root ? "" : ", and as root (runAsUser: 0)");
}

static const char *remedy_filter(const char *syscall, struct arena *arena)
{
	return arena_printf(arena, "add {\"names\": [\"%s\"], \"action\": \"SCMP_ACT_ALLOW\"} to the container's seccomp profile, "
				   "or start it with --security-opt seccomp=unconfined", syscall);
}

static const char *remedy_label(const struct lsm_label *label, struct arena *arena)
{
	bool is_selinux = strcmp(label->module, "SELinux") == 0;

	return arena_printf(arena, "%s may be what refuses it (%s %s): start the container with --security-opt %s", label->module,
			    is_selinux ? "type" : "profile", label->name, is_selinux ? "label=disable" : "apparmor=unconfined");
}

const char *rights_remedy(const struct rights *rights, uint64_t needed, const char *syscall, struct arena *arena)
{
	uint64_t lacking = needed & ~rights->capabilities;
	char help[RIGHTS_HELP];

	if (rights->in_user_namespace)
		return "run it on the host: in a user namespace these rights are worth nothing outside of it";
	if (lacking && (rights->is_filtered || rights->is_root))
		return remedy_in_container(rights, lacking, arena);
	if (lacking)
		return arena_intern(arena, rights_help(needed, help));
	if (rights->is_filtered && syscall)
		return remedy_filter(syscall, arena);
	if (rights->is_locked_down)
		return "boot with lockdown=none: the kernel is locked down (/sys/kernel/security/lockdown), even against root";
	return rights->label.module ? remedy_label(&rights->label, arena) : NULL;
}

const char *rights_remedy_ptrace(const struct rights *rights, const char *syscall, struct arena *arena)
{
	if (rights->ptrace_scope == 3)
		return "restart the machine with kernel.yama.ptrace_scope below 3: it cannot be lowered while it runs";
	if (rights->ptrace_scope > 0 && !(rights->capabilities & RIGHT(CAP_SYS_PTRACE)))
		return arena_printf(arena, "sudo sysctl kernel.yama.ptrace_scope=0 (it is %d) lets you read your own processes",
				    rights->ptrace_scope);
	return rights_remedy(rights, RIGHT(CAP_SYS_PTRACE), syscall, arena);
}
