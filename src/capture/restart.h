/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_RESTART_H
#define STAKEOUT_CAPTURE_RESTART_H

#include <stdbool.h>

#include "model/snapshot.h"
#include "proc/process.h"

/*
 * True when a thread that is blocked there can be stopped without noticing: the kernel starts the system call again
 * by itself. Others (epoll_wait, semtimedop, sigtimedwait, sockets with a timeout…) fail with EINTR after any stop.
 */
bool restart_is_silent(const struct process *process, pid_t tid, const struct arch *arch, const struct snap_syscall *syscall);

#endif
