/* SPDX-License-Identifier: MIT */
#include "doctor/doctor.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
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

static bool attempt(struct doctor *doctor, const struct check *check)
{
	struct finding finding = {.group = check->group, .name = check->name, .about = check->about};
	const uint64_t started = monotonic_ns();
	struct err err = {0};
	int rc = check->attempt(doctor, &finding.how, &err);

	finding.ns = monotonic_ns() - started;
	if (rc != 0) {
		finding.state = rc == CHECK_PARTLY ? FINDING_PARTLY : check->is_extra ? FINDING_NO_LOSS : FINDING_FAILS;
		finding.why = arena_printf(doctor->arena, "%s", err.msg);
		finding.costs = check->costs;
		finding.remedy = find_remedy(doctor, check, err.code);
	}
	return vec_push(&doctor->diagnosis->findings, finding);
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
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (size_t j = 0; j < all[i]->len; j++)
			if (!attempt(doctor, &all[i]->list[j]))
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
