/* SPDX-License-Identifier: MIT */
#include "runtime/pages.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

enum { WANTED = 0, IN_VAIN = 1, READ_COST = 64 };

static const uint64_t max_effort = UINT64_C(1) << 30; /* a second or two */

void pages_init(struct pages *pages, uint64_t bytes)
{
	*pages = (struct pages){.left = bytes / PAGES_SIZE, .effort = max_effort};
}

void pages_deinit(struct pages *pages)
{
	u64map_deinit(&pages->known);
	vec_deinit(&pages->wanted);
	for (size_t i = 0; i < pages->read.len; i++)
		free(pages->read.data[i]);
	vec_deinit(&pages->read);
}

void pages_read_live(struct pages *pages, struct mem *live, uint64_t bytes)
{
	pages_deinit(pages);
	pages_init(pages, bytes);
	pages->live = live;
}

static void read_now(struct pages *pages, uint64_t number)
{
	bool created;
	uint64_t *slot = u64map_put(&pages->known, number, &created);
	uint8_t *piece = slot && created && pages->left ? malloc(PAGES_SIZE) : NULL;

	if (!slot || !created)
		return;
	*slot = IN_VAIN;
	if (!piece)
		return;
	pages->left--;
	if (mem_read_exact(pages->live, number * PAGES_SIZE, piece, PAGES_SIZE) && vec_push(&pages->read, piece))
		*slot = (uintptr_t)piece;
	else
		free(piece);
}

static const uint8_t *find(struct pages *pages, uint64_t number)
{
	const uint64_t *slot;

	if (pages->live)
		read_now(pages, number);
	slot = u64map_find(&pages->known, number);
	pages->lacks |= slot ? *slot == WANTED : pages->left > 0;
	return slot && *slot > IN_VAIN ? (const uint8_t *)(uintptr_t)*slot : NULL;
}

static void note(struct pages *pages, uint64_t number)
{
	bool created;

	if (!pages->left || pages->live || u64map_find(&pages->known, number))
		return;
	if (u64map_put(&pages->known, number, &created) && vec_push(&pages->wanted, number))
		pages->left--;
	else
		pages->no_memory = true;
}

void pages_foresee(struct pages *pages, uint64_t address, uint64_t len)
{
	uint64_t last = len && address <= UINT64_MAX - (len - 1) ? (address + len - 1) / PAGES_SIZE : 0;

	for (uint64_t number = address / PAGES_SIZE; number <= last && pages->left; number++)
		note(pages, number);
}

bool pages_read(struct pages *pages, uint64_t address, void *buf, size_t len)
{
	uint8_t *out = buf;

	if ((len && address > UINT64_MAX - (len - 1)) || pages->effort < len + READ_COST)
		return false;
	pages->effort -= len + READ_COST;
	for (size_t done = 0; done < len;) {
		uint64_t at = address + done, offset = at % PAGES_SIZE;
		size_t part = len - done < PAGES_SIZE - offset ? len - done : PAGES_SIZE - (size_t)offset;
		const uint8_t *bytes = find(pages, at / PAGES_SIZE);

		if (!bytes) {
			pages_foresee(pages, at, len - done);
			return false;
		}
		memcpy(out + done, bytes + offset, part);
		done += part;
	}
	return true;
}

bool pages_read_word(struct pages *pages, uint64_t address, uint64_t *out)
{
	uint64_t word;

	if (!pages_read(pages, address, &word, sizeof(word)))
		return false;
	*out = le64toh(word);
	return true;
}

/* The pieces that lie wholly in a copy; what is known already stays as it is. */
static bool take_copy(struct pages *pages, uint64_t start, uint64_t len, const uint8_t *data)
{
	uint64_t skip = start % PAGES_SIZE ? PAGES_SIZE - start % PAGES_SIZE : 0;

	for (uint64_t at = skip; at <= len && len - at >= PAGES_SIZE; at += PAGES_SIZE) {
		bool created;
		uint64_t *slot = u64map_put(&pages->known, (start + at) / PAGES_SIZE, &created);

		if (!slot)
			return false;
		if (*slot <= IN_VAIN)
			*slot = (uintptr_t)(data + at);
	}
	return true;
}

/* What could not be read is not asked for again. */
static void give_up(struct pages *pages, const struct ask_range *range)
{
	for (uint64_t at = range->got / PAGES_SIZE * PAGES_SIZE; at < range->len; at += PAGES_SIZE) {
		uint64_t *slot = u64map_find(&pages->known, (range->address + at) / PAGES_SIZE);

		if (slot && *slot == WANTED)
			*slot = IN_VAIN;
	}
}

bool pages_take(struct pages *pages, const struct ask *answers)
{
	for (size_t i = 0; i < answers->len; i++) {
		const struct ask_range *range = &answers->data[i];

		if (!take_copy(pages, range->address, range->got, range->data))
			return false;
		give_up(pages, range);
	}
	return true;
}

bool pages_load(struct pages *pages, const struct snapshot *snap, pid_t tid)
{
	pages->left = 0;
	for (size_t i = 0; i < snap->copies.len; i++) {
		const struct snap_copy *copy = &snap->copies.data[i];

		if (copy->tid == tid && !take_copy(pages, copy->copy.start, copy->copy.len, copy->copy.data))
			return false;
	}
	return true;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return COMPARE(*x, *y);
}

/* A piece that cannot be read must not cost its neighbours of another mapping, so runs end with the page of the target. */
static bool is_in_run(const struct pages *pages, size_t i)
{
	uint64_t number = pages->wanted.data[i];

	return number == pages->wanted.data[i - 1] + 1 &&
	       number * PAGES_SIZE % 4096 != 0;
}

bool pages_want(struct pages *pages, struct ask *wants)
{
	size_t n = pages->wanted.len;

	if (n)
		qsort(pages->wanted.data, n, sizeof(*pages->wanted.data), compare_numbers);
	for (size_t first = 0, end; first < n; first = end) {
		for (end = first + 1; end < n && is_in_run(pages, end); end++)
			;
		if (!ask_want(wants, pages->wanted.data[first] * PAGES_SIZE, (end - first) * PAGES_SIZE, ASK_BYTES))
			return false;
	}
	pages->wanted.len = 0;
	return !pages->no_memory;
}
