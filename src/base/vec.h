/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_VEC_H
#define STAKEOUT_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

/*
 * A growing array of any type:
 *
 *	VEC(struct map_entry) v = {0};
 *	if (!vec_push(&v, entry))
 *		return -ENOMEM;
 *	for (size_t i = 0; i < v.len; i++)
 *		use(&v.data[i]);
 *	vec_deinit(&v);
 *
 * To pass a vector between functions give its struct a name: struct maps { VEC_FIELDS(struct map_entry); }.
 */
#define VEC_FIELDS(type)    \
	type *data;         \
	size_t len;         \
	size_t cap

#define VEC(type)                 \
	struct {                  \
		VEC_FIELDS(type); \
	}

/* Makes room for at least `want` elements of `size` bytes; false when memory is exhausted. */
bool vec_grow(void **data, size_t *cap, size_t want, size_t size);

#define vec_reserve(v, want) \
	((want) <= (v)->cap || vec_grow((void **)&(v)->data, &(v)->cap, (want), sizeof(*(v)->data)))

#define vec_push(v, ...) (vec_reserve((v), (v)->len + 1) && ((v)->data[(v)->len++] = (__VA_ARGS__), true))

#define vec_deinit(v)              \
	do {                       \
		free((v)->data);   \
		(v)->data = NULL;  \
		(v)->len = 0;      \
		(v)->cap = 0;      \
	} while (0)

#endif
