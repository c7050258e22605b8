/* SPDX-License-Identifier: MIT */
#include "offcpu/record/late_places.h"

#include <stdlib.h>

#include "base/sorted.h"

enum { MAX_ENDS = 1 << 20 };

/* A stack of a process. */
struct process_stack {
	pid_t tgid;
	struct wait_stack *stack;
};

/* Orders by process, then by time. The memory limit keeps the number of stacks within 32 bits. */
static uint64_t moment(pid_t tgid, size_t number)
{
	return (uint64_t)tgid << 32 | number;
}

void late_places_init(struct late_places *places)
{
	*places = (struct late_places){.known = SIZE_MAX};
}

void late_places_deinit(struct late_places *places)
{
	vec_deinit(&places->ends);
}

void late_places_end_program(struct late_places *places, pid_t tgid, size_t next)
{
	if (places->known == SIZE_MAX && (places->ends.len >= MAX_ENDS || !vec_push(&places->ends, moment(tgid, next))))
		places->known = next;
}

static int compare_moments(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int compare_stacks(const void *a, const void *b)
{
	const struct process_stack *x = a, *y = b;
	uint64_t when_x = moment(x->tgid, x->stack->number), when_y = moment(y->tgid, y->stack->number);

	return compare_moments(&when_x, &when_y);
}

/* From this stack of a process on, its stacks up to this number are of the same program. */
static size_t find_end(const struct late_places *places, pid_t tgid, size_t number)
{
	const uint64_t *ends = places->ends.data;
	size_t after = sorted_upto(ends, places->ends.len, , moment(tgid, number));

	if (after < places->ends.len && (pid_t)(ends[after] >> 32) == tgid && (uint32_t)ends[after] < places->known)
		return (uint32_t)ends[after];
	return places->known;
}

static void place(struct tables *tables, struct wait_stack *stack, uint32_t set)
{
	for (size_t i = 0; i < stack->user.len; i++) {
		struct raw_frame *frame = &stack->user.data[i];

		if (frame->pc == stack->addresses[i]) /* it has no place yet */
			frame->pc = tables_place_frame(tables, set, frame);
	}
}

static void find_places(const struct late_places *places, struct tables *tables, const struct process_stack *stacks,
			size_t n)
{
	const struct process_stack *later = NULL; /* the next one that was walked with maps */

	for (size_t i = n; i-- > 0;) {
		const struct process_stack *s = &stacks[i];

		if (later && later->tgid != s->tgid)
			later = NULL;
		if (later && s->stack->user_end == OFFCPU_END_NO_TABLES && s->stack->set != later->stack->set &&
		    later->stack->number < find_end(places, s->tgid, s->stack->number))
			place(tables, s->stack, later->stack->set);
		if (s->stack->set && !s->stack->is_shared) /* only then its time says something about this process */
			later = s;
	}
}

void late_places_find(struct late_places *places, struct tables *tables, const struct waits *waits)
{
	struct process_stack *stacks = calloc(waits_nrows(waits) + 1, sizeof(*stacks));
	size_t n = 0;

	for (size_t i = 0; stacks && i < waits_nrows(waits); i++) {
		const struct wait_row *row = waits_row(waits, i);

		if (row->stack && row->stack->user.len)
			stacks[n++] = (struct process_stack){.tgid = row->tgid, .stack = row->stack};
	}
	if (n) {
		qsort(stacks, n, sizeof(*stacks), compare_stacks);
		if (places->ends.len)
			qsort(places->ends.data, places->ends.len, sizeof(*places->ends.data), compare_moments);
		find_places(places, tables, stacks, n);
	}
	free(stacks);
}
