/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_ARENA_H
#define STAKEOUT_BASE_ARENA_H

#include <stddef.h>

/*
 * Memory that is freed all at once. Strings are interned: equal strings have equal addresses, so names repeated
 * over thousands of frames cost one copy and compare by pointer.
 */
struct arena;

struct arena *arena_create(void);
void arena_destroy(struct arena *arena);

/* Zeroed, aligned for any type; NULL when memory is exhausted. */
void *arena_alloc(struct arena *arena, size_t size);

/* NULL for NULL, and when memory is exhausted. */
const char *arena_intern(struct arena *arena, const char *s);
const char *arena_intern_n(struct arena *arena, const char *s, size_t len);
const char *arena_printf(struct arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
