/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { BLOCK_SIZE = 64 * 1024 };

struct block {
	struct block *next;
	size_t used;
	size_t size;
	alignas(max_align_t) uint8_t data[];
};

struct arena {
	struct block *blocks;
	const char **strings; /* open-addressed set */
	size_t nstrings;
	size_t cap;
};

struct arena *arena_create(void)
{
	return calloc(1, sizeof(struct arena));
}

void arena_destroy(struct arena *arena)
{
	if (!arena)
		return;
	for (struct block *b = arena->blocks, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	free(arena->strings);
	free(arena);
}

static struct block *block_create(size_t size)
{
	struct block *b = calloc(1, sizeof(*b) + size);

	if (b)
		b->size = size;
	return b;
}

/* A large piece gets its own block, placed behind the first one, so that the rest of that stays in use. */
static struct block *block_for(struct arena *arena, size_t size)
{
	struct block *first = arena->blocks, *b;

	if (first && first->size - first->used >= size)
		return first;
	b = block_create(size > BLOCK_SIZE / 4 ? size : BLOCK_SIZE);
	if (!b)
		return NULL;
	if (first && size > BLOCK_SIZE / 4) {
		b->next = first->next;
		first->next = b;
	} else {
		b->next = first;
		arena->blocks = b;
	}
	return b;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);
	struct block *b;
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + align - 1) / align * align;
	b = block_for(arena, size);
	if (!b)
		return NULL;
	p = b->data + b->used;
	b->used += size;
	return p;
}

static size_t slot_for(const char **strings, size_t cap, const char *s, size_t len)
{
	size_t i = hash_bytes(HASH_SEED, s, len) & (cap - 1);

	/* Measure our own copy: the other string may have become shorter since. */
	while (strings[i] && (strnlen(strings[i], len + 1) != len || memcmp(strings[i], s, len) != 0))
		i = (i + 1) & (cap - 1);
	return i;
}

static bool grow_strings(struct arena *arena)
{
	size_t cap = arena->cap ? arena->cap * 2 : 256;
	const char **strings = calloc(cap, sizeof(*strings));

	if (!strings)
		return false;
	for (size_t i = 0; i < arena->cap; i++) {
		const char *s = arena->strings[i];

		if (s)
			strings[slot_for(strings, cap, s, strlen(s))] = s;
	}
	free(arena->strings);
	arena->strings = strings;
	arena->cap = cap;
	return true;
}

const char *arena_intern_n(struct arena *arena, const char *s, size_t len)
{
	size_t i;
	char *copy;

	if (!s)
		return NULL;
	len = strnlen(s, len);
	if (arena->nstrings * 2 >= arena->cap && !grow_strings(arena))
		return NULL;
	i = slot_for(arena->strings, arena->cap, s, len);
	if (!arena->strings[i]) {
		copy = arena_alloc(arena, len + 1);
		if (!copy)
			return NULL;
		memcpy(copy, s, len);
		arena->strings[i] = copy;
		arena->nstrings++;
	}
	return arena->strings[i];
}

const char *arena_intern(struct arena *arena, const char *s)
{
	return s ? arena_intern_n(arena, s, strlen(s)) : NULL;
}

const char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	char text[256], *longer = NULL;
	const char *interned;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (len >= (int)sizeof(text)) {
		va_start(ap, fmt);
		len = vasprintf(&longer, fmt, ap);
		va_end(ap);
	}
	if (len < 0)
		return NULL;
	interned = arena_intern_n(arena, longer ? longer : text, (size_t)len);
	free(longer);
	return interned;
}
