/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PRIVILEGE_SANDBOX_H
#define STAKEOUT_PRIVILEGE_SANDBOX_H

#include "base/err.h"

/*
 * For the process that parses what others wrote: gives up all rights, for good. Afterwards it is the caller's, not root's
 * where sudo tells who that is, has no capability, cannot be looked into by the caller's other processes, ends with its
 * parent, and is held by a seccomp filter to what parsing takes: memory, threads, descriptors that it has or is sent. It
 * opens, connects, executes and traces nothing. A refused call fails with EPERM.
 *
 * 0, or -errno and what could not be given up; the rest is given up all the same.
 */
int sandbox_enter(struct err *err);

/* The same without the filter, for a process that has to talk to the network in the caller's name. */
int sandbox_become_caller(struct err *err);

#endif
