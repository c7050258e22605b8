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
