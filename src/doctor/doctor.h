/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DOCTOR_DOCTOR_H
#define STAKEOUT_DOCTOR_DOCTOR_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "model/finding.h"

/*
 * Tries all that the program can use, most of it on a process of its own, and tells what works; pid: what this will mean for
 * that process, or 0. Strings go to the arena. Fails only where nothing can be tried at all.
 */
int doctor_diagnose(pid_t pid, struct arena *arena, struct err *err, struct diagnosis *out);

#endif
