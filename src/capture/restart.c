/* SPDX-License-Identifier: MIT */
#include "capture/restart.h"

#include <string.h>

/* Reading from a socket with SO_RCVTIMEO fails with EINTR; whether it has one cannot be seen from outside. */
static bool is_socket(const struct process *process, pid_t tid, uint64_t fd)
{
	char link[64];

	return process_fd_link(process, tid, (int)fd, link, sizeof(link)) < 0 || strncmp(link, "socket:", 7) == 0;
}

bool restart_is_silent(const struct process *process, pid_t tid, const struct arch *arch, const struct snap_syscall *syscall)
{
	static const char *const silent[] = {
		"futex", "futex_wait", "futex_waitv", "poll", "ppoll", "select", "pselect6", "nanosleep", "clock_nanosleep",
		"wait4", "waitid", "pause", "rt_sigsuspend", "restart_syscall", "flock",
	};
	const struct syscall_info *call = syscall->state == SYSCALL_IN ? arch_syscall(arch, syscall->nr) : NULL;

	if (!call)
		return false;
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
		if (strcmp(call->name, silent[i]) == 0)
			return true;
	return (strcmp(call->name, "read") == 0 || strcmp(call->name, "write") == 0) && !is_socket(process, tid, syscall->args[0]);
}
