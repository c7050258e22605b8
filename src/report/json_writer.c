/* SPDX-License-Identifier: MIT */
#include "report/json_writer.h"

#include <inttypes.h>
#include <stddef.h>
#include <time.h>

#include "base/utf8.h"

static void begin(struct json *j, const char *key)
{
	if (j->comma)
		fputc(',', j->out);
	j->comma = true;
	if (key) {
		fputc('"', j->out);
		fputs(key, j->out);
		fputs("\":", j->out);
	}
}

static void open_bracket(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->out);
	j->comma = false;
}

static void close_bracket(struct json *j, char bracket)
{
	fputc(bracket, j->out);
	j->comma = true;
}

void json_object(struct json *j, const char *key)
{
	open_bracket(j, key, '{');
}

void json_object_end(struct json *j)
{
	close_bracket(j, '}');
}

void json_array(struct json *j, const char *key)
{
	open_bracket(j, key, '[');
}

void json_array_end(struct json *j)
{
	close_bracket(j, ']');
}

/* How much of the text, from its start, needs no escaping: nearly always all of it. */
static size_t plain_length(const char *s)
{
	size_t len = 0;

	while (s[len] >= ' ' && s[len] <= '~' && s[len] != '"' && s[len] != '\\')
		len++;
	return len;
}

static void put_escaped(FILE *out, const char *s)
{
	uint32_t code;

	for (size_t len; *s; s += len) {
		len = plain_length(s);
		if (len) {
			fwrite(s, 1, len, out);
			continue;
		}
		len = utf8_next(s, &code);
		if (code == '"' || code == '\\')
			fprintf(out, "\\%c", (int)code);
		else if (utf8_is_control(code) || code == UTF8_REPLACEMENT)
			fprintf(out, "\\u%04" PRIx32, code);
		else
			fwrite(s, 1, len, out);
	}
}

void json_string(struct json *j, const char *key, const char *value)
{
	if (!value) {
		json_null(j, key);
		return;
	}
	begin(j, key);
	fputc('"', j->out);
	put_escaped(j->out, value);
	fputc('"', j->out);
}

void json_null(struct json *j, const char *key)
{
	begin(j, key);
	fputs("null", j->out);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->out);
}

/* At least `width` digits. By hand: with --events there are millions of numbers a second. */
static void put_digits(FILE *out, uint64_t value, size_t width)
{
	char digits[20]; /* of UINT64_MAX */
	size_t first = sizeof(digits);

	while (value || sizeof(digits) - first < width) {
		digits[--first] = (char)('0' + value % 10);
		value /= 10;
	}
	fwrite(digits + first, 1, sizeof(digits) - first, out);
}

void json_int(struct json *j, const char *key, int64_t value)
{
	begin(j, key);
	if (value < 0)
		fputc('-', j->out);
	put_digits(j->out, value < 0 ? -(uint64_t)value : (uint64_t)value, 1);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	put_digits(j->out, value, 1);
}

void json_hex(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	fprintf(j->out, "\"0x%" PRIx64 "\"", value);
}

void json_thousandths(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	fprintf(j->out, "%" PRIu64 ".%03u", value / 1000, (unsigned)(value % 1000));
}

/* Part of a time, after what separates it from the one before. */
static void put_part(FILE *out, char separator, int value, size_t width)
{
	fputc(separator, out);
	put_digits(out, (uint64_t)value, width);
}

void json_time(struct json *j, const char *key, int64_t ns)
{
	const int64_t second = 1000000000;
	int64_t part = ns % second + (ns % second < 0 ? second : 0); /* times before 1970 are negative */
	time_t seconds = (time_t)(ns / second - (ns % second < 0));
	struct tm tm;

	gmtime_r(&seconds, &tm);
	begin(j, key);
	put_part(j->out, '"', tm.tm_year + 1900, 4);
	put_part(j->out, '-', tm.tm_mon + 1, 2);
	put_part(j->out, '-', tm.tm_mday, 2);
	put_part(j->out, 'T', tm.tm_hour, 2);
	put_part(j->out, ':', tm.tm_min, 2);
	put_part(j->out, ':', tm.tm_sec, 2);
	put_part(j->out, '.', (int)part, 9);
	fputs("Z\"", j->out);
}
