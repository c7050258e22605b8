/* SPDX-License-Identifier: MIT */
#include "doctor/doctor.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "doctor/check.h"
#include "doctor/process.h"

static const struct checks *const all[] = {&reading_checks, &kernel_checks, &name_checks, &rung_checks};

/* Whether one of those in a list with commas works. */
static bool any_works(const struct findings *findings, const char *names)
{
	while (names && *names) {
		size_t len = strcspn(names, ",");
		const struct finding *finding = findings_find(findings, names, len);

		if (finding && finding->state == FINDING_WORKS)
			return true;
		names += len + (names[len] == ',');
	}
	return false;
}

static const char *find_remedy(struct doctor *doctor, const struct check *check, int code)
{
	if (check->remedy)
		return check->remedy(doctor, code);
	return code == EPERM || code == EACCES ? rights_remedy(&doctor->rights, check->refused, check->syscall, doctor->arena) : NULL;
}

/* What is tried at the same time: one check, or some that can be. */
struct trial {
	const struct check *check;
	const char *how;
	struct err err;
	uint64_t ns;
	int rc;
};

struct trials {
	struct doctor *doctor;
	VEC_FIELDS(struct trial);
};

static void attempt(void *ctx, size_t i)
{
	struct trials *trials = ctx;
	struct trial *trial = &trials->data[i];
	const uint64_t started = monotonic_ns();

	trial->rc = trial->check->attempt(trials->doctor, &trial->how, &trial->err);
	trial->ns = monotonic_ns() - started;
}

static bool add_finding(struct doctor *doctor, const struct trial *trial)
{
	const struct check *check = trial->check;
	struct finding finding = {.group = check->group, .name = check->name, .about = check->about, .how = trial->how, .ns = trial->ns};

	if (trial->rc != 0) {
		finding.state = trial->rc == CHECK_PARTLY ? FINDING_PARTLY : check->is_extra ? FINDING_NO_LOSS : FINDING_FAILS;
		finding.why = arena_printf(doctor->arena, "%s", trial->err.msg);
		finding.costs = check->costs;
		finding.remedy = find_remedy(doctor, check, trial->err.code);
	}
	return vec_push(&doctor->diagnosis->findings, finding);
}

/* How many from the first on are tried together. */
static size_t count_beside(const struct checks *checks, size_t first)
{
	size_t n = 1;

	while (checks->list[first].beside && first + n < checks->len && checks->list[first + n].beside)
		n++;
	return n;
}

static bool try_some(struct trials *trials, const struct check *list, size_t n)
{
	trials->len = 0;
	for (size_t i = 0; i < n; i++)
		if (!vec_push(trials, (struct trial){.check = &list[i]}))
			return false;
	if (n == 1)
		attempt(trials, 0);
	else
		parallel_for(n, attempt, trials);
	for (size_t i = 0; i < n; i++)
		if (!add_finding(trials->doctor, &trials->data[i]))
			return false;
	return true;
}

/* When all have been tried: what fails is no loss where something better works. */
static void find_no_losses(struct findings *findings)
{
	size_t n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (size_t j = 0; j < all[i]->len; j++, n++)
			if (findings->data[n].state != FINDING_WORKS && any_works(findings, all[i]->list[j].better))
				findings->data[n].state = FINDING_NO_LOSS;
	}
}

static int try_all(struct doctor *doctor, struct err *err)
{
	struct trials trials = {.doctor = doctor};
	bool ok = true;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (size_t j = 0, n; ok && j < all[i]->len; j += n) {
			n = count_beside(all[i], j);
			ok = try_some(&trials, &all[i]->list[j], n);
		}
	vec_deinit(&trials);
	if (!ok)
		return err_set(err, ENOMEM, "out of memory");
	find_no_losses(&doctor->diagnosis->findings);
	return 0;
}

int doctor_diagnose(pid_t pid, struct arena *arena, struct err *err, struct diagnosis *out)
{
	struct doctor doctor = {.arena = arena, .diagnosis = out};
	int rc = patient_start(&doctor.patient, err);

	if (rc < 0)
		return rc;
	rights_read(&doctor.rights);
	rc = try_all(&doctor, err);
	patient_end(&doctor.patient);
	out->pid = pid;
	if (rc == 0 && pid)
		rc = doctor_examine(&doctor, err);
	store_close(doctor.cache);
	return rc;
}
