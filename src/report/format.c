/* SPDX-License-Identifier: MIT */
#include "report/format.h"

const struct report_format report_format_text = {
	.is_text = true,
	.has_notes = true,
	.traces = report_text,
	.why = report_why_text,
	.watch_round = report_watch_round_text,
	.watch_summary = report_watch_summary_text,
	.profile = report_offcpu_text,
};

const struct report_format report_format_json = {
	.option = "--json",
	.has_notes = true,
	.trace = report_json,
	.why = report_why_json,
	.watch_round = report_watch_round_json,
	.watch_summary = report_watch_summary_json,
	.profile = report_offcpu_json,
};

const struct report_format report_format_folded = {
	.option = "--folded",
	.profile = report_offcpu_folded,
};

const struct report_format report_format_dot = {
	.option = "--dot",
	.has_notes = true,
	.why = report_why_dot,
};
