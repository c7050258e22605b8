/* SPDX-License-Identifier: MIT */
#include "offcpu/late_places.h"

#include <stdlib.h>

enum { MAX_ENDS = 1 << 20 };

/* A stack of a process. */
struct taken {
	pid_t tgid;
	struct wait_stack *stack;
};

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
	const struct program_end end = {.tgid = tgid, .next = next};

	if (places->known == SIZE_MAX && (places->ends.len >= MAX_ENDS || !vec_push(&places->ends, end)))
		places->known = next;
}

static int compare(pid_t a, size_t a_number, pid_t b, size_t b_number)
{
	return a != b ? (a > b) - (a < b) : (a_number > b_number) - (a_number < b_number);
}

static int compare_ends(const void *a, const void *b)
{
	const struct program_end *x = a, *y = b;

	return compare(x->tgid, x->next, y->tgid, y->next);
}

static int compare_taken(const void *a, const void *b)
{
	const struct taken *x = a, *y = b;

	return compare(x->tgid, x->stack->number, y->tgid, y->stack->number);
}

/* The number up to which, from this stack of a process on, its stacks are of the same program. */
static size_t find_end(const struct late_places *places, pid_t tgid, size_t number)
{
	size_t low = 0, high = places->ends.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare(places->ends.data[mid].tgid, places->ends.data[mid].next, tgid, number) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < places->ends.len && places->ends.data[low].tgid == tgid && places->ends.data[low].next < places->known)
		return places->ends.data[low].next;
	return places->known;
}

static void place(struct tables *tables, struct wait_stack *stack, uint32_t set)
{
	for (size_t i = 0; i < stack->user.len; i++) {
		struct raw_frame *frame = &stack->user.data[i];
		uint64_t back = frame->flags & FRAME_RETURN_ADDRESS ? 1 : 0, found;

		if (frame->pc != stack->addresses[i])
			continue; /* it has a place */
		found = tables_place(tables, set, frame->pc - back);
		if (found)
			frame->pc = found + back;
	}
}

static void find_places(const struct late_places *places, struct tables *tables, const struct taken *taken, size_t n)
{
	const struct taken *later = NULL; /* the next one that was walked with maps */

	for (size_t i = n; i-- > 0;) {
		const struct taken *t = &taken[i];

		if (later && later->tgid != t->tgid)
			later = NULL;
		if (later && t->stack->user_end == OFFCPU_END_NO_TABLES && t->stack->set != later->stack->set &&
		    later->stack->number < find_end(places, t->tgid, t->stack->number))
			place(tables, t->stack, later->stack->set);
		if (t->stack->set && !t->stack->is_shared) /* when it came tells of this process */
			later = t;
	}
}

void late_places_find(struct late_places *places, struct tables *tables, const struct waits *waits)
{
	struct taken *taken = calloc(waits_nrows(waits) + 1, sizeof(*taken));
	size_t n = 0;

	for (size_t i = 0; taken && i < waits_nrows(waits); i++) {
		const struct wait_row *row = waits_row(waits, i);

		if (row->stack && row->stack->user.len)
			taken[n++] = (struct taken){.tgid = row->tgid, .stack = row->stack};
	}
	if (n) {
		qsort(taken, n, sizeof(*taken), compare_taken);
		if (places->ends.len)
			qsort(places->ends.data, places->ends.len, sizeof(*places->ends.data), compare_ends);
		find_places(places, tables, taken, n);
	}
	free(taken);
}
