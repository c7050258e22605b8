/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_SAMPLES_H
#define STAKEOUT_OFFCPU_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/offcpu.h"
#include "offcpu/sleeping.h"
#include "symbol/symbolizer.h"

/* Waits as sampling finds them, added up by thread and stack, and named at the end. */
struct samples;

/* Who waits, and where. Texts are interned in one arena that outlives the samples. */
struct sample {
	pid_t pid;
	pid_t tid;
	char state;                /* S or D */
	const char *const *kernel; /* innermost first */
	size_t nkernel;
	const char *kernel_error; /* why it is missing, or NULL */
	const struct sleeping_frame *user;
	size_t nuser;
	const char *user_error; /* why it is missing or ends early, or NULL */
};

/* Waits with the same process, thread, state and stacks. */
struct sample_row;

struct samples_options {
	size_t max_rows;
};

/* NULL when memory is exhausted. */
struct samples *samples_create(const struct samples_options *options);
void samples_destroy(struct samples *samples);

/* NULL when memory is exhausted, or there are too many rows. */
struct sample_row *samples_row(struct samples *samples, const struct sample *sample);

/* Adds a wait; `row` may be NULL: then only its thread has it. False when something of it is lost. */
bool samples_add(struct samples *samples, struct sample_row *row, pid_t pid, pid_t tid, const char *thread_name,
		 char state, uint64_t duration_ns, bool unfinished);

/*
 * Fills total, threads and rows of the profile, whose duration is set; strings and stacks belong to the samples. Once
 * only; `naming` must outlive the samples, and the modules that it finds. False when memory is exhausted.
 */
bool samples_fill(struct samples *samples, const struct symbolizer_options *naming, struct offcpu_profile *out);

#endif
