/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DOCTOR_CHECK_H
#define STAKEOUT_DOCTOR_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "doctor/patient.h"
#include "doctor/rights.h"
#include "model/finding.h"
#include "symbol/store.h"

/* What the checks work with. */
struct doctor {
	struct arena *arena; /* owns what findings say */
	struct rights rights;
	struct patient patient;
	struct store *cache; /* of names; NULL: there is none */
	struct diagnosis *diagnosis;
};

enum { CHECK_PARTLY = 1 };

/*
 * Something that the program can use. To add one: a function that really does it, and a line in the list of its file; a file
 * has a line in doctor.c.
 */
struct check {
	const char *group, *name, *about, *costs;
	/* 0, and in *how what was seen, if that is worth a word; or -errno and a sentence; CHECK_PARTLY and a sentence. */
	int (*attempt)(struct doctor *doctor, const char **how, struct err *err);
	enum refused refused; /* what helps where it is */
	const char *syscall; /* what is called, where a container's filter may refuse that */
	const char *(*remedy)(struct doctor *doctor, int code); /* NULL: what `refused` tells */
	const char *better; /* names of checks, with commas: with any of them nothing is lost without this */
	bool is_extra;      /* nothing is lost without it anyhow */
	bool beside;        /* it is tried beside its neighbours that are, by another thread, and touches nothing of the doctor's */
};

struct checks {
	const struct check *list;
	size_t len;
};

/* reading.c: processes; kernel.c: what the kernel lets us load and ask; rungs.c: whole stacks, each way; names.c. */
extern const struct checks reading_checks, kernel_checks, rung_checks, name_checks;

#endif
