/* SPDX-License-Identifier: MIT */
#include "model/finding.h"

#include <string.h>

const char *finding_state_name(enum finding_state state)
{
	static const char *const names[FINDING_STATES] = {
		[FINDING_WORKS] = "works",
		[FINDING_PARTLY] = "partly",
		[FINDING_FAILS] = "fails",
		[FINDING_NO_LOSS] = "no_loss",
	};

	return names[state];
}

const struct finding *findings_find(const struct findings *findings, const char *name, size_t len)
{
	for (size_t i = 0; i < findings->len; i++)
		if (strlen(findings->data[i].name) == len && memcmp(findings->data[i].name, name, len) == 0)
			return &findings->data[i];
	return NULL;
}

void diagnosis_deinit(struct diagnosis *diagnosis)
{
	vec_deinit(&diagnosis->findings);
	for (size_t i = 0; i < diagnosis->verdicts.len; i++)
		vec_deinit(&diagnosis->verdicts.data[i].lacks);
	vec_deinit(&diagnosis->verdicts);
}

/* With a process what matters is what will be missing of it. */
bool diagnosis_is_good(const struct diagnosis *diagnosis)
{
	for (size_t i = 0; i < diagnosis->verdicts.len; i++)
		if (!diagnosis->verdicts.data[i].rung || diagnosis->verdicts.data[i].lacks.len)
			return false;
	for (size_t i = 0; !diagnosis->pid && i < diagnosis->findings.len; i++)
		if (diagnosis->findings.data[i].state == FINDING_FAILS || diagnosis->findings.data[i].state == FINDING_PARTLY)
			return false;
	return !diagnosis->pid || diagnosis->comm;
}
