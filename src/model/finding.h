/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_FINDING_H
#define STAKEOUT_MODEL_FINDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

/* What was tried on this machine, and what came of it: all that a report of `stakeout doctor` needs. */

enum finding_state {
	FINDING_WORKS,
	FINDING_PARTLY,
	FINDING_FAILS,
	FINDING_NO_LOSS, /* it fails, but something that works is better: nothing is lost */
	FINDING_STATES,
};

/* The name in JSON: "works", "partly", "fails", "no_loss". */
const char *finding_state_name(enum finding_state state);

/* Strings outlive it. */
struct finding {
	const char *group; /* what it belongs to: "reading processes" */
	const char *name;  /* for programs: "process_vm_readv" */
	const char *about; /* for people */
	enum finding_state state;
	const char *how;    /* it works: what was seen, or NULL */
	const char *why;    /* it does not, or only partly: what is in the way */
	const char *costs;  /* then what results lack */
	const char *remedy; /* then a command that would help, or where there is none, words; NULL: nothing is known */
	uint64_t ns;        /* how long it took to try */
};

struct findings {
	VEC_FIELDS(struct finding);
};

/* The one with this name, of `len` bytes; NULL: there is none. */
const struct finding *findings_find(const struct findings *findings, const char *name, size_t len);

/* What a command will do with the process that was asked about. */
struct verdict {
	const char *command; /* "snapshot", "offcpu" */
	const char *rung;    /* "bpf", "sched_exit", "proc"; NULL: it cannot be done at all */
	VEC(const char *) lacks; /* sentences: what will be missing */
};

struct diagnosis {
	struct findings findings;
	pid_t pid;        /* 0: no process was asked about */
	const char *comm; /* its name; NULL: there is no such process */
	VEC(struct verdict) verdicts;
};

void diagnosis_deinit(struct diagnosis *diagnosis);

/* True when everything that was asked for works. */
bool diagnosis_is_good(const struct diagnosis *diagnosis);

#endif
