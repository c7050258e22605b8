/* SPDX-License-Identifier: MIT */
#include "base/intervals.h"

#include <string.h>

#include "base/sorted.h"

enum {
	DIGIT_BITS = 11,
	DIGITS = 1 << DIGIT_BITS,
	FEW = 32, /* up to so many are sorted by insertion */
};

bool intervals_add(struct intervals *intervals, uint64_t start, uint64_t end, uint32_t id, uint32_t rank)
{
	return end <= start ||
	       vec_push(intervals, (struct interval){.start = start, .end = end, .id = id, .rank = rank});
}

/* One stable pass over `shift`…`shift + DIGIT_BITS` of the starts. */
static void sort_digit(const struct interval *from, struct interval *to, size_t len, uint64_t base, unsigned shift)
{
	size_t at[DIGITS] = {0}, sum = 0;

	for (size_t i = 0; i < len; i++)
		at[(from[i].start - base) >> shift & (DIGITS - 1)]++;
	for (size_t i = 0; i < DIGITS; i++) {
		size_t count = at[i];

		at[i] = sum;
		sum += count;
	}
	for (size_t i = 0; i < len; i++)
		to[at[(from[i].start - base) >> shift & (DIGITS - 1)]++] = from[i];
}

static void sort_few(struct intervals *v)
{
	for (size_t i = 1; i < v->len; i++) {
		struct interval moving = v->data[i];
		size_t j = i;

		for (; j > 0 && v->data[j - 1].start > moving.start; j--)
			v->data[j] = v->data[j - 1];
		v->data[j] = moving;
	}
}

/* Digit by digit: the addresses of a file share all but the lowest few. */
bool intervals_sort(struct intervals *v)
{
	uint64_t low = UINT64_MAX, high = 0;
	struct interval *spare;
	bool sorted = true;

	for (size_t i = 0; i < v->len; i++) {
		low = v->data[i].start < low ? v->data[i].start : low;
		high = v->data[i].start > high ? v->data[i].start : high;
		sorted &= i == 0 || v->data[i - 1].start <= v->data[i].start;
	}
	if (sorted)
		return true;
	if (v->len <= FEW) {
		sort_few(v);
		return true;
	}
	spare = malloc(v->len * sizeof(*spare));
	if (!spare)
		return false;
	for (unsigned shift = 0; shift < 64 && (high - low) >> shift; shift += DIGIT_BITS) {
		struct interval *old = v->data;

		sort_digit(v->data, spare, v->len, low, shift);
		v->data = spare;
		spare = old;
	}
	free(spare);
	v->cap = v->len;
	return true;
}

/* A heap of the intervals that are open at the sweep's position, with the visible one on top. */
struct heap {
	VEC_FIELDS(uint32_t);
};

static bool is_above(const struct interval *v, uint32_t a, uint32_t b)
{
	return v[a].rank != v[b].rank ? v[a].rank > v[b].rank : a > b;
}

static bool heap_push(struct heap *heap, const struct interval *v, uint32_t index)
{
	size_t i = heap->len;

	if (!vec_push(heap, index))
		return false;
	while (i > 0 && is_above(v, index, heap->data[(i - 1) / 2])) {
		heap->data[i] = heap->data[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap->data[i] = index;
	return true;
}

static void heap_pop(struct heap *heap, const struct interval *v)
{
	uint32_t moving = heap->data[--heap->len];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= heap->len)
			break;
		if (child + 1 < heap->len && is_above(v, heap->data[child + 1], heap->data[child]))
			child++;
		if (!is_above(v, heap->data[child], moving))
			break;
		heap->data[i] = heap->data[child];
		i = child;
	}
	if (heap->len)
		heap->data[i] = moving;
}

static bool emit(struct pieces *out, uint64_t start, uint32_t id)
{
	if (out->len ? out->data[out->len - 1].id == id : id == PIECE_NONE)
		return true;
	return vec_push(out, (struct piece){.start = start, .id = id});
}

static bool sweep(const struct intervals *v, struct heap *heap, struct pieces *out)
{
	size_t next = 0;

	while (next < v->len || heap->len) {
		uint64_t at = heap->len ? v->data[heap->data[0]].end : UINT64_MAX;

		if (next < v->len && v->data[next].start < at)
			at = v->data[next].start;
		while (next < v->len && v->data[next].start == at)
			if (!heap_push(heap, v->data, (uint32_t)next++))
				return false;
		while (heap->len && v->data[heap->data[0]].end <= at)
			heap_pop(heap, v->data);
		if (!emit(out, at, heap->len ? v->data[heap->data[0]].id : PIECE_NONE))
			return false;
	}
	return true;
}

bool intervals_flatten(struct intervals *intervals, struct pieces *out)
{
	struct heap heap = {0};
	bool ok;

	out->len = 0;
	ok = intervals->len < UINT32_MAX && intervals_sort(intervals) && sweep(intervals, &heap, out);
	vec_deinit(&heap);
	return ok;
}

uint32_t pieces_find(const struct pieces *pieces, uint64_t address)
{
	size_t upto = sorted_upto(pieces->data, pieces->len, .start, address);

	return upto ? pieces->data[upto - 1].id : PIECE_NONE;
}
