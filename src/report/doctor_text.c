/* SPDX-License-Identifier: MIT */
#include "report/doctor.h"

#include <string.h>

static void show_state(const struct text *t, const struct finding *finding)
{
	static const struct {
		enum style style;
		const char *words;
	} shown[FINDING_STATES] = {
		[FINDING_WORKS] = {STYLE_GOOD, "works"},
		[FINDING_PARTLY] = {STYLE_BAD, "partly"},
		[FINDING_FAILS] = {STYLE_BAD, "FAILS"},
		[FINDING_NO_LOSS] = {STYLE_DIM, "no loss"},
	};

	text_style(t, shown[finding->state].style);
	fprintf(t->out, "  %-8s", shown[finding->state].words);
	text_style(t, STYLE_PLAIN);
}

static void show_more(const struct text *t, const char *what, const char *words)
{
	if (!words)
		return;
	fprintf(t->out, "            %s: ", what);
	text_untrusted(t, words);
	fputc('\n', t->out);
}

static void show_finding(const struct text *t, const struct finding *finding, bool verbose)
{
	char duration[DURATION_LEN];

	show_state(t, finding);
	fputs(finding->about, t->out);
	if (finding->how) {
		fputs(": ", t->out);
		text_untrusted(t, finding->how);
	}
	if (verbose)
		fprintf(t->out, " (%s, %s)", finding->name, format_duration(finding->ns, duration));
	fputc('\n', t->out);
	if (finding->state == FINDING_NO_LOSS && !verbose)
		return;
	show_more(t, "why", finding->why);
	show_more(t, "so", finding->costs);
	show_more(t, "help", finding->remedy);
}

static void show_verdict(const struct text *t, const struct diagnosis *diagnosis, const struct verdict *verdict)
{
	text_style(t, verdict->rung ? STYLE_STRONG : STYLE_BAD);
	if (strcmp(verdict->command, "snapshot") == 0)
		fprintf(t->out, "  stakeout %d", (int)diagnosis->pid);
	else
		fprintf(t->out, "  stakeout %s -p %d", verdict->command, (int)diagnosis->pid);
	text_style(t, STYLE_PLAIN);
	if (verdict->rung)
		fprintf(t->out, ": by %s; %s\n", verdict->rung, verdict->lacks.len ? "what is missing:" : "nothing is missing");
	else
		fprintf(t->out, ": cannot be done\n");
	for (size_t i = 0; i < verdict->lacks.len; i++) {
		fputs("    - ", t->out);
		text_untrusted(t, verdict->lacks.data[i]);
		fputc('\n', t->out);
	}
}

void report_doctor_text(const struct diagnosis *diagnosis, const struct text *t, bool verbose)
{
	const char *group = "";

	for (size_t i = 0; i < diagnosis->findings.len; i++) {
		const struct finding *finding = &diagnosis->findings.data[i];

		if (strcmp(finding->group, group) != 0) {
			fprintf(t->out, "%s%s:\n", *group ? "\n" : "", finding->group);
			group = finding->group;
		}
		show_finding(t, finding, verbose);
	}
	if (!diagnosis->pid)
		return;
	fprintf(t->out, "\nprocess %d (", (int)diagnosis->pid);
	text_untrusted(t, diagnosis->comm);
	fputs("):\n", t->out);
	for (size_t i = 0; i < diagnosis->verdicts.len; i++)
		show_verdict(t, diagnosis, &diagnosis->verdicts.data[i]);
}
