/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_DOCTOR_H
#define STAKEOUT_REPORT_DOCTOR_H

#include "model/finding.h"
#include "report/text_format.h"

/* `verbose`: also how long each took, and what fails without a loss. */
void report_doctor_text(const struct diagnosis *diagnosis, const struct text *text, bool verbose);

/* docs/schema/doctor.schema.json describes this document. */
void report_doctor_json(const struct diagnosis *diagnosis, FILE *out);

#endif
