/* SPDX-License-Identifier: MIT */
#include "report/doctor.h"

#include "report/json_writer.h"

static void write_finding(struct json *j, const struct finding *finding)
{
	json_object(j, NULL);
	json_string(j, "group", finding->group);
	json_string(j, "name", finding->name);
	json_string(j, "about", finding->about);
	json_string(j, "state", finding_state_name(finding->state));
	json_string(j, "how", finding->how);
	json_string(j, "why", finding->why);
	json_string(j, "costs", finding->costs);
	json_string(j, "remedy", finding->remedy);
	json_uint(j, "duration_ns", finding->ns);
	json_object_end(j);
}

static void write_verdict(struct json *j, const struct verdict *verdict)
{
	json_object(j, NULL);
	json_string(j, "command", verdict->command);
	json_string(j, "method", verdict->rung);
	json_array(j, "lacks");
	for (size_t i = 0; i < verdict->lacks.len; i++)
		json_string(j, NULL, verdict->lacks.data[i]);
	json_array_end(j);
	json_object_end(j);
}

void report_doctor_json(const struct diagnosis *diagnosis, FILE *out)
{
	struct json j = {.out = out};

	json_object(&j, NULL);
	json_string(&j, "schema", "stakeout.doctor/1");
	json_bool(&j, "good", diagnosis_is_good(diagnosis));
	json_array(&j, "findings");
	for (size_t i = 0; i < diagnosis->findings.len; i++)
		write_finding(&j, &diagnosis->findings.data[i]);
	json_array_end(&j);
	if (diagnosis->pid) {
		json_object(&j, "process");
		json_uint(&j, "pid", (uint64_t)diagnosis->pid);
		json_string(&j, "name", diagnosis->comm);
		json_array(&j, "verdicts");
		for (size_t i = 0; i < diagnosis->verdicts.len; i++)
			write_verdict(&j, &diagnosis->verdicts.data[i]);
		json_array_end(&j);
		json_object_end(&j);
	} else {
		json_null(&j, "process");
	}
	json_object_end(&j);
	fputc('\n', out);
}
