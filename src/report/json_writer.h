/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_JSON_WRITER_H
#define STAKEOUT_REPORT_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Writes JSON without spaces or line breaks. `key` names the value in an object and is NULL in an array; keys are
 * literals and are not escaped. What was written is in the stream when the outermost object ends; errors stay there.
 */
struct json {
	FILE *out;
	bool comma; /* there is a value before the next one */
	unsigned depth;
	size_t len; /* of `text`: a call of the stream for every bit of text takes longer than all else */
	char text[1024];
};

void json_object(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *key);
void json_array_end(struct json *j);

/* NULL gives null. Bytes that are not UTF-8 become U+FFFD. */
void json_string(struct json *j, const char *key, const char *value);
void json_null(struct json *j, const char *key);
void json_bool(struct json *j, const char *key, bool value);
void json_int(struct json *j, const char *key, int64_t value);
void json_uint(struct json *j, const char *key, uint64_t value);

/* Keys with their values, at least one, as they are to be written: for those that are nearly always the same. */
void json_members(struct json *j, const char *text);

/* "0x1f", as a string: most readers do not keep all 64 bits of a number. */
void json_hex(struct json *j, const char *key, uint64_t value);

/* value / 1000, exactly. */
void json_thousandths(struct json *j, const char *key, uint64_t value);

/* Of nanoseconds; null if they are negative. */
void json_milliseconds(struct json *j, const char *key, int64_t ns);

/* Null if it is not known. */
void json_int_or_null(struct json *j, const char *key, bool known, int64_t value);
void json_hex_or_null(struct json *j, const char *key, bool known, uint64_t value);

/* Nanoseconds since 1970 as "2023-11-14T22:13:20.000000042Z". */
void json_time(struct json *j, const char *key, int64_t ns);

#endif
