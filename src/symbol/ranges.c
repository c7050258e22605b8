/* SPDX-License-Identifier: MIT */
#include "symbol/ranges.h"

#include <stdlib.h>

bool ranges_add(struct ranges *ranges, uint64_t start, uint64_t end, uint32_t id)
{
	return start >= end || vec_push(ranges, (struct range){.start = start, .end = end, .id = id});
}

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

bool ranges_sort(struct ranges *ranges)
{
	uint64_t reach = 0;

	ranges->reach = calloc(ranges->len ? ranges->len : 1, sizeof(*ranges->reach));
	if (!ranges->reach)
		return false;
	if (ranges->len)
		qsort(ranges->data, ranges->len, sizeof(*ranges->data), compare);
	for (size_t i = 0; i < ranges->len; i++) {
		if (ranges->data[i].end > reach)
			reach = ranges->data[i].end;
		ranges->reach[i] = reach;
	}
	return true;
}

const struct range *ranges_find(const struct ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ranges->data[mid].start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	while (low-- > 0 && ranges->reach[low] > address)
		if (ranges->data[low].end > address)
			return &ranges->data[low];
	return NULL;
}

void ranges_deinit(struct ranges *ranges)
{
	free(ranges->reach);
	ranges->reach = NULL;
	vec_deinit(ranges);
}
