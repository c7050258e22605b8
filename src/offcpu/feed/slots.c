/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/slots.h"

#include <string.h>

bool slots_init(struct slots *slots, uint32_t count)
{
	*slots = (struct slots){0};
	return vec_push(&slots->free, (struct slot_run){.count = count});
}

void slots_deinit(struct slots *slots)
{
	vec_deinit(&slots->free);
}

static void remove_run(struct slots *slots, size_t i)
{
	slots->free.len--;
	memmove(&slots->free.data[i], &slots->free.data[i + 1], (slots->free.len - i) * sizeof(*slots->free.data));
}

bool slots_take(struct slots *slots, uint32_t count, uint32_t *first)
{
	for (size_t i = 0; i < slots->free.len; i++) {
		struct slot_run *run = &slots->free.data[i];

		if (run->count < count)
			continue;
		*first = run->first;
		run->first += count;
		run->count -= count;
		if (!run->count)
			remove_run(slots, i);
		return true;
	}
	return false;
}

bool slots_give(struct slots *slots, uint32_t first, uint32_t count)
{
	struct slot_run run = {.first = first, .count = count}, *before = NULL, *after = NULL;
	size_t i = 0;

	while (i < slots->free.len && slots->free.data[i].first < first)
		i++;
	if (i > 0 && slots->free.data[i - 1].first + slots->free.data[i - 1].count == first)
		before = &slots->free.data[i - 1];
	if (i < slots->free.len && slots->free.data[i].first == first + count)
		after = &slots->free.data[i];
	if (before) {
		before->count += count + (after ? after->count : 0);
		if (after)
			remove_run(slots, i);
		return true;
	}
	if (after) {
		*after = (struct slot_run){.first = first, .count = count + after->count};
		return true;
	}
	if (!vec_push(&slots->free, run))
		return false;
	memmove(&slots->free.data[i + 1], &slots->free.data[i], (slots->free.len - 1 - i) * sizeof(*slots->free.data));
	slots->free.data[i] = run;
	return true;
}
