/* SPDX-License-Identifier: MIT */
#include "cmd/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;
	unsigned long long value;
	unsigned shift = 0;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || !isdigit((unsigned char)*text))
		return false;
	if (*end == 'k' || *end == 'K')
		shift = 10;
	else if (*end == 'm' || *end == 'M')
		shift = 20;
	else if (*end == 'g' || *end == 'G')
		shift = 30;
	if (shift)
		end++;
	if (*end || value > UINT64_MAX >> shift)
		return false;
	*out = (uint64_t)value << shift;
	return *out >= min && *out <= max;
}

int parse_word(const char *option, const char *value, const char *const *words, struct err *err)
{
	char list[128] = "";
	size_t len = 0;

	for (int i = 0; words[i]; i++) {
		if (strcmp(value, words[i]) == 0)
			return i;
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
		if (len >= sizeof(list))
			break;
	}
	return err_set(err, EINVAL, "%s takes %s, not '%s'", option, list, value);
}

/* "5", "0.25": the number as whole * 10^digits. False when it is none, or too long to be one. */
static bool parse_decimal(const char **text, uint64_t *mantissa, uint64_t *scale)
{
	const char *p = *text;
	bool fraction = false;

	*mantissa = 0;
	*scale = 1;
	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p) || (*p == '.' && !fraction); p++) {
		if (*p == '.') {
			fraction = true;
			continue;
		}
		if (__builtin_mul_overflow(*mantissa, 10, mantissa) ||
		    __builtin_add_overflow(*mantissa, (uint64_t)(*p - '0'), mantissa))
			return false;
		if (fraction && __builtin_mul_overflow(*scale, 10, scale))
			return false;
	}
	*text = p;
	return p[-1] != '.';
}

bool parse_duration(const char *text, uint64_t unit, uint64_t *ns)
{
	static const struct {
		const char *suffix;
		uint64_t ns;
	} units[] = {
		{"ns", 1},
		{"us", 1000},
		{"µs", 1000}, /* the micro sign */
		{"μs", 1000}, /* and the Greek letter */
		{"ms", 1000000},
		{"s", 1000000000},
		{"min", UINT64_C(60) * 1000000000},
		{"h", UINT64_C(3600) * 1000000000},
	};
	uint64_t mantissa, scale;
	unsigned __int128 value;

	if (!parse_decimal(&text, &mantissa, &scale))
		return false;
	if (*text)
		unit = 0;
	for (size_t i = 0; *text && i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(text, units[i].suffix) == 0)
			unit = units[i].ns;
	if (!unit && (*text || mantissa))
		return false;
	value = (unsigned __int128)mantissa * unit / scale;
	*ns = (uint64_t)value;
	return value <= UINT64_MAX && (*ns || !mantissa); /* less than a nanosecond is not nothing */
}
