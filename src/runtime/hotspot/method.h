/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_METHOD_H
#define STAKEOUT_RUNTIME_HOTSPOT_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cursor.h"
#include "base/map.h"
#include "runtime/hotspot/layout.h"
#include "runtime/pages.h"

/*
 * The numbers of HotSpot's compressed streams: up to five bytes of six bits each but for the last, which ends it by being
 * small. From 20 on no byte is 0, and all are one higher. Marks the cursor bad where there is no number.
 */
uint32_t unsigned5_read(struct cursor *c, bool excludes_zero);
int32_t unsigned5_read_signed(struct cursor *c, bool excludes_zero);

/*
 * The line of a bytecode, from a compressed table of pairs; 0: there is none. The pairs are in any order, and the nearest
 * before it counts.
 */
uint32_t line_table_find(struct cursor *table, bool excludes_zero, uint32_t bci);

struct method {
	const char *name; /* "java.lang.Thread.sleep", with the class */
	const char *file; /* or NULL */
	uint64_t bytecode; /* its address, and its size */
	uint32_t code_size;
	bool is_native;
	uint64_t lines; /* address of the line table, or 0 */
	uint64_t lines_size; /* at most */
};

struct methods {
	const struct layout *layout;
	struct pages *pages;
	struct arena *arena;
	struct u64map known; /* Method → struct method */
};

void methods_init(struct methods *methods, const struct layout *layout, struct pages *pages, struct arena *arena);
void methods_deinit(struct methods *methods);

/* NULL: there is no method, or not all that tells of it is known. */
const struct method *methods_find(struct methods *methods, uint64_t address);

/* Only where its bytecode is, and how long. */
bool methods_find_code(struct methods *methods, uint64_t address, uint64_t *start, uint64_t *size);

/* False: not all of the table is known. *line is 0 when the method does not tell. */
bool methods_find_line(struct methods *methods, const struct method *method, int32_t bci, uint32_t *line);

#endif
