/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DOCTOR_PATIENT_H
#define STAKEOUT_DOCTOR_PATIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * A process to try things on: our own program, in functions whose place is known. Its main thread waits for the end, another
 * one for some milliseconds, again and again; or it has one thread, which runs. It is nobody's child, since some kernels let
 * a process read only its own, and has no privilege.
 */
struct patient {
	pid_t pid; /* 0: there is none */
	int leash; /* it lives as long as this is open */
};

int patient_start(struct patient *patient, struct err *err);
int patient_start_running(struct patient *patient, struct err *err);
void patient_end(struct patient *patient); /* returns when it has ended */

/* Whether an address of its code is in the functions that wait, or run. */
bool patient_waits_at(uint64_t pc);

/* Something that it has at the same address as we. */
extern const uint64_t patient_word;

#endif
