/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_DICT_H
#define STAKEOUT_RUNTIME_PYTHON_DICT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mem.h"
#include "runtime/python/layout.h"

/*
 * Dictionaries, sets, and the attributes of objects. They change while they are read: what is found is a hint, and whoever follows
 * it checks what it leads to. Reads are bounded in number by PYTHON_MAX_ENTRIES.
 */

enum { PYTHON_MAX_ENTRIES = 8192 };

/* A key and a value, both objects; false stops. */
typedef bool (*python_visit)(void *ctx, uint64_t key, uint64_t value);

void python_dict_visit(const struct python_layout *layout, struct mem *mem, uint64_t dict, python_visit visit, void *ctx);

/* The value of a key that is a str of ASCII; 0: there is none. */
uint64_t python_dict_get(const struct python_layout *layout, struct mem *mem, uint64_t dict, const char *key);

/* The members of a set, in the first PYTHON_MAX_ENTRIES * 8 of its places; false stops. */
typedef bool (*python_visit_member)(void *ctx, uint64_t member);

void python_set_visit(struct mem *mem, uint64_t set, python_visit_member visit, void *ctx);

/* An attribute that an instance of a class of the program has by itself; 0: there is none. */
uint64_t python_attribute(const struct python_layout *layout, struct mem *mem, uint64_t object, const char *name);

#endif
