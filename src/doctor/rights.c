/* SPDX-License-Identifier: MIT */
#include "doctor/rights.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/process.h"

/* "[none] integrity confidentiality" */
static bool is_locked_down(void)
{
	char text[64];

	return process_read_file(AT_FDCWD, "/sys/kernel/security/lockdown", text, sizeof(text)) > 0 && !strstr(text, "[none]");
}

void rights_read(struct rights *rights)
{
	_cleanup_close_ int self = -1;

	*rights = (struct rights){.is_locked_down = is_locked_down()};
	standing_read(&rights->standing);
	self = open("/proc/self", O_PATH | O_CLOEXEC);
	lsm_read(self, &rights->label);
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

const char *rights_remedy(const struct rights *rights, enum refused what, const char *syscall, struct arena *arena)
{
	const struct standing *standing = &rights->standing;
	char help[REMEDY_SIZE];

	if (standing->in_user_namespace || remedy_is_forbidden(what, standing) || remedy_needs(what) & ~standing->capabilities)
		return arena_intern(arena, remedy_for(what, standing, help));
	if (standing->is_filtered && syscall)
		return remedy_filter(syscall, arena);
	if (rights->is_locked_down)
		return "boot with lockdown=none: the kernel is locked down (/sys/kernel/security/lockdown), even against root";
	if (remedy_besides(what))
		return remedy_besides(what);
	return rights->label.module ? remedy_label(&rights->label, arena) : NULL;
}
