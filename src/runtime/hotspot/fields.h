/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_FIELDS_H
#define STAKEOUT_RUNTIME_HOTSPOT_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/hotspot/layout.h"
#include "runtime/pages.h"

/* A field of objects of a class. */
struct java_field {
	const char *name; /* to be found */
	uint32_t offset;
	char type; /* as in signatures: 'I', 'L', '['…; 0: there is no such field */
};

/*
 * Finds fields that a class itself declares, and where its objects' fields begin. False: not all that tells is known, or it
 * cannot be right.
 */
bool fields_find(const struct layout *layout, struct pages *pages, uint64_t class, struct java_field *fields, size_t n,
		 uint32_t *first);

#endif
