/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_SOURCE_GO_H
#define STAKEOUT_SYMBOL_SOURCE_GO_H

#include "elf/image.h"
#include "symbol/source.h"

/*
 * Go's .gopclntab: functions, lines and inlined calls, also of stripped programs, as Go's own tracebacks have them.
 * `struct call` has the name in `name`: Go does not mangle.
 */
struct go_source;

/* Borrows the image. -ENOENT when it is not a Go program. */
int go_source_create(struct image *image, struct err *err, struct go_source **out);
void go_source_destroy(struct go_source *source);

bool go_source_find(struct go_source *source, uint64_t vaddr, struct calls *out);

extern const struct source_ops go_source_ops;

#endif
