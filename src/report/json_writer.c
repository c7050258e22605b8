/* SPDX-License-Identifier: MIT */
#include "report/json_writer.h"

#include <string.h>
#include <time.h>

#include "base/utf8.h"

static void flush(struct json *j)
{
	fwrite(j->text, 1, j->len, j->out);
	j->len = 0;
}

/* For up to so many bytes. */
static char *make_room(struct json *j, size_t most)
{
	if (most > sizeof(j->text) - j->len)
		flush(j);
	return j->text + j->len;
}

static void put(struct json *j, const char *s, size_t len)
{
	char *at = make_room(j, len);

	if (len > sizeof(j->text)) {
		fwrite(s, 1, len, j->out);
		return;
	}
	memcpy(at, s, len);
	j->len += len;
}

static void put_char(struct json *j, char c)
{
	*make_room(j, 1) = c;
	j->len++;
}

static void begin(struct json *j, const char *key)
{
	const size_t len = key ? strlen(key) : 0;
	char *at = make_room(j, len + sizeof(",\"\":"));

	if (j->comma)
		*at++ = ',';
	if (key) {
		*at++ = '"';
		memcpy(at, key, len);
		at += len;
		*at++ = '"';
		*at++ = ':';
	}
	j->comma = true;
	j->len = (size_t)(at - j->text);
}

static void open_bracket(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	put_char(j, bracket);
	j->comma = false;
	j->depth++;
}

static void close_bracket(struct json *j, char bracket)
{
	put_char(j, bracket);
	j->comma = true;
	if (--j->depth == 0)
		flush(j);
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

static bool is_plain(char c)
{
	return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/* Of eight characters. What carries over to the next one, or borrows from it, is not plain itself. */
static bool are_plain(const char *s)
{
	const uint64_t each = 0x0101010101010101, top = 0x80 * each;
	uint64_t text, quotes, backslashes;

	memcpy(&text, s, sizeof(text));
	quotes = text ^ '"' * each;
	backslashes = text ^ '\\' * each;
	return !(((text - ' ' * each) | (text + each) | text | (quotes - each) | (backslashes - each)) & top);
}

/* How much of the text, from its start, needs no escaping: nearly always all of it. */
static size_t plain_length(const char *s, size_t len)
{
	size_t plain = 0;

	while (len - plain >= sizeof(uint64_t) && are_plain(s + plain))
		plain += sizeof(uint64_t);
	while (plain < len && is_plain(s[plain]))
		plain++;
	return plain;
}

/* At least `width` digits. By hand: with --events there are millions of numbers a second. */
static void put_digits(struct json *j, uint64_t value, size_t width)
{
	char digits[20]; /* of UINT64_MAX */
	size_t first = sizeof(digits);

	while (value || sizeof(digits) - first < width) {
		digits[--first] = (char)('0' + value % 10);
		value /= 10;
	}
	put(j, digits + first, sizeof(digits) - first);
}

static void put_hex_digits(struct json *j, uint64_t value, size_t width)
{
	char digits[16];
	size_t first = sizeof(digits);

	while (value || sizeof(digits) - first < width) {
		digits[--first] = "0123456789abcdef"[value & 0xf];
		value >>= 4;
	}
	put(j, digits + first, sizeof(digits) - first);
}

static void put_escaped(struct json *j, const char *s)
{
	size_t left = strlen(s);
	uint32_t code;

	for (size_t len; left; s += len, left -= len) {
		len = plain_length(s, left);
		if (len) {
			put(j, s, len);
			continue;
		}
		len = utf8_next(s, &code);
		if (code == '"' || code == '\\') {
			put_char(j, '\\');
			put_char(j, (char)code);
		} else if (utf8_is_control(code) || code == UTF8_REPLACEMENT) {
			put(j, "\\u", 2);
			put_hex_digits(j, code, 4);
		} else {
			put(j, s, len);
		}
	}
}

void json_string(struct json *j, const char *key, const char *value)
{
	if (!value) {
		json_null(j, key);
		return;
	}
	begin(j, key);
	put_char(j, '"');
	put_escaped(j, value);
	put_char(j, '"');
}

void json_null(struct json *j, const char *key)
{
	begin(j, key);
	put(j, "null", 4);
}

void json_members(struct json *j, const char *text)
{
	begin(j, NULL);
	put(j, text, strlen(text));
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	put(j, value ? "true" : "false", value ? 4 : 5);
}

void json_int(struct json *j, const char *key, int64_t value)
{
	begin(j, key);
	if (value < 0)
		put_char(j, '-');
	put_digits(j, value < 0 ? -(uint64_t)value : (uint64_t)value, 1);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	put_digits(j, value, 1);
}

void json_hex(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	put(j, "\"0x", 3);
	put_hex_digits(j, value, 1);
	put_char(j, '"');
}

void json_thousandths(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	put_digits(j, value / 1000, 1);
	put_char(j, '.');
	put_digits(j, value % 1000, 3);
}

void json_milliseconds(struct json *j, const char *key, int64_t ns)
{
	if (ns < 0)
		json_null(j, key);
	else
		json_thousandths(j, key, (uint64_t)ns / 1000);
}

void json_int_or_null(struct json *j, const char *key, bool known, int64_t value)
{
	if (known)
		json_int(j, key, value);
	else
		json_null(j, key);
}

void json_hex_or_null(struct json *j, const char *key, bool known, uint64_t value)
{
	if (known)
		json_hex(j, key, value);
	else
		json_null(j, key);
}

/* Part of a time, after what separates it from the one before. */
static void put_part(struct json *j, char separator, int value, size_t width)
{
	put_char(j, separator);
	put_digits(j, (uint64_t)value, width);
}

void json_time(struct json *j, const char *key, int64_t ns)
{
	const int64_t second = 1000000000;
	int64_t part = ns % second + (ns % second < 0 ? second : 0); /* times before 1970 are negative */
	time_t seconds = (time_t)(ns / second - (ns % second < 0));
	struct tm tm;

	gmtime_r(&seconds, &tm);
	begin(j, key);
	put_part(j, '"', tm.tm_year + 1900, 4);
	put_part(j, '-', tm.tm_mon + 1, 2);
	put_part(j, '-', tm.tm_mday, 2);
	put_part(j, 'T', tm.tm_hour, 2);
	put_part(j, ':', tm.tm_min, 2);
	put_part(j, ':', tm.tm_sec, 2);
	put_part(j, '.', (int)part, 9);
	put(j, "Z\"", 2);
}
