/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DOCTOR_PROCESS_H
#define STAKEOUT_DOCTOR_PROCESS_H

#include "base/err.h"
#include "doctor/check.h"

/* What the commands will do with the process that was asked about, when all has been tried. Nobody is stopped. */
int doctor_examine(struct doctor *doctor, struct err *err);

#endif
