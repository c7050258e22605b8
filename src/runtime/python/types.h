/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_TYPES_H
#define STAKEOUT_RUNTIME_PYTHON_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mem.h"

/* What an object's type says of it. */
struct python_type {
	uint64_t address;
	uint64_t basic_size; /* of its instances */
	char name[64];       /* cut, where it is longer; with the module, where the type is not of the program */
	uint64_t flags;      /* tp_flags */
	bool is_iterator;
	bool of_program;     /* made at run time, by a class statement or a module; else it is part of the interpreter or of a library */
};

/* The address of an object's type; 0: it cannot be read. */
uint64_t python_type_of(struct mem *mem, uint64_t object);

bool python_type_read(struct mem *mem, uint64_t object, struct python_type *out);

/* Whether an object is of a type of the interpreter's own, by its name. */
bool python_is_a(struct mem *mem, uint64_t object, const char *name);

#endif
