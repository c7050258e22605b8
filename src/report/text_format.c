/* SPDX-License-Identifier: MIT */
#include "report/text_format.h"

#include <inttypes.h>
#include <string.h>

#include "report/names.h"
#include "base/utf8.h"

void text_style(const struct text *t, enum style style)
{
	static const char *const codes[] = {
		[STYLE_PLAIN] = "0", [STYLE_STRONG] = "1", [STYLE_DIM] = "2",  [STYLE_KERNEL] = "33",
		[STYLE_CALL] = "36", [STYLE_GOOD] = "32",  [STYLE_BAD] = "31",
	};

	if (t->color)
		fprintf(t->out, "\033[%sm", codes[style]);
}

void text_untrusted(const struct text *t, const char *s)
{
	uint32_t code;

	for (size_t len; *s; s += len) {
		len = utf8_next(s, &code);
		if (code == UTF8_REPLACEMENT)
			fputs("\xef\xbf\xbd", t->out);
		else if (utf8_is_control(code))
			fprintf(t->out, code < 0x100 ? "\\x%02" PRIx32 : "\\u%04" PRIx32, code);
		else
			fwrite(s, 1, len, t->out);
	}
}

/* value / unit, with one decimal below 100 and none above. */
static void format_unit(uint64_t ns, uint64_t unit, const char *name, char buf[DURATION_LEN])
{
	uint64_t tenths = (ns + unit / 20) / (unit / 10);

	if (tenths < 1000)
		snprintf(buf, DURATION_LEN, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, name);
	else
		snprintf(buf, DURATION_LEN, "%" PRIu64 " %s", (ns + unit / 2) / unit, name);
}

const char *format_duration(uint64_t ns, char buf[DURATION_LEN])
{
	const uint64_t us = 1000, ms = 1000 * us, s = 1000 * ms;
	uint64_t seconds, minutes, hours;

	/* What would be rounded up to a whole one of the next unit is one. */
	if (ns < ms - us / 2) {
		snprintf(buf, DURATION_LEN, "%" PRIu64 " µs", (ns + us / 2) / us);
		return buf;
	}
	if (ns < s - ms / 2) {
		format_unit(ns, ms, "ms", buf);
		return buf;
	}
	if (ns < 60 * s - s / 20) {
		format_unit(ns, s, "s", buf);
		return buf;
	}
	seconds = ns < 60 * s ? 60 : ns / s;
	minutes = seconds / 60;
	hours = minutes / 60;
	if (minutes < 60)
		snprintf(buf, DURATION_LEN, "%" PRIu64 " min %02" PRIu64 " s", minutes, seconds % 60);
	else if (hours < 24)
		snprintf(buf, DURATION_LEN, "%" PRIu64 " h %02" PRIu64 " min", hours, minutes % 60);
	else
		snprintf(buf, DURATION_LEN, "%" PRIu64 " d %02" PRIu64 " h", hours / 24, hours % 24);
	return buf;
}

void text_state(const struct text *t, const struct snap_thread *thread, int columns)
{
	char state = thread->state;
	enum style style = state == 'R' ? STYLE_GOOD : state == 'D' ? STYLE_BAD : STYLE_PLAIN;

	if (style != STYLE_PLAIN)
		text_style(t, style);
	fprintf(t->out, "%c %-*s", state > ' ' && state < 0x7f ? state : '?', columns > 2 ? columns - 2 : 0,
		thread_is_ready(thread) ? "ready, no CPU" : name_thread_state(state));
	if (style != STYLE_PLAIN)
		text_style(t, STYLE_PLAIN);
}

const char *path_tail(const char *path, unsigned keep)
{
	const char *p = path + strlen(path);

	while (p > path && (p[-1] != '/' || --keep > 0))
		p--;
	return p;
}
