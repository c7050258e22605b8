/* SPDX-License-Identifier: MIT */
#include "cmd/likeness.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_WORD = 63, MIN_START = 3 };

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Letters to add, leave out, replace, or swap with the next one. Both words have at most MAX_WORD. */
static unsigned find_distance(const char *a, const char *b)
{
	unsigned rows[3][MAX_WORD + 1], *before = rows[0], *last = rows[1], *row = rows[2];
	size_t width = strlen(b);

	for (unsigned j = 0; j <= width; j++)
		last[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned *next = before;

		row[0] = i;
		for (unsigned j = 1; j <= width; j++) {
			row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		before = last;
		last = row;
		row = next;
	}
	return last[width];
}

void likeness_try(struct likeness *likeness, const char *candidate)
{
	size_t len = strlen(likeness->word), other = strlen(candidate);
	bool starts_so = len >= MIN_START && other > len && strncmp(candidate, likeness->word, len) == 0;
	unsigned distance;

	if (!len || len > MAX_WORD || other > MAX_WORD || strcmp(candidate, likeness->word) == 0)
		return;
	distance = starts_so ? 1 : find_distance(likeness->word, candidate);
	if (distance > (len + 1) / 3 || (likeness->best && distance >= likeness->distance))
		return;
	likeness->best = candidate;
	likeness->distance = distance;
}
