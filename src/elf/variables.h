/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_VARIABLES_H
#define STAKEOUT_ELF_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/image.h"

/* A variable of a file, by its symbol tables: they are read anew each time, as few are ever asked for. */
struct variable {
	const char *name; /* name_len bytes, not NUL-terminated; as long as the image */
	size_t name_len;
	uint64_t start;
};

/* The one that covers an address; of several the one that begins last, then the shortest name. */
bool variable_find(const struct image *image, uint64_t vaddr, struct variable *out);

#endif
