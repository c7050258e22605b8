/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DWARF_SPLIT_H
#define STAKEOUT_DWARF_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "dwarf/entry.h"
#include "dwarf/file.h"

/*
 * Split DWARF: the linked file has a skeleton of each unit, the unit itself is in a .dwo file beside the object file,
 * or all of them are in one .dwp file. Any thread may look for units.
 */
struct split_files;

/* Opens a file for the DWARF of another: `name`, which may be relative to `dir` (NULL: to nothing known). */
typedef int (*split_open)(void *ctx, const char *dir, const char *name, struct image **out);

/* `package` (the .dwp file, or NULL) is taken over; `open` may be NULL. NULL when memory is exhausted. */
struct split_files *split_files_create(struct image *package, split_open open, void *ctx);
void split_files_destroy(struct split_files *files);

/*
 * The unit that belongs to a skeleton, whose root and view are given: `view` is opened on it, with what a split unit
 * takes from its skeleton. False when it is not found or damaged.
 */
bool split_view_init(struct split_files *files, const struct unit_view *skeleton, const struct entry *root,
		     struct unit_view *view);

/* The name of a file that was not found, or was of another build; or NULL. */
const char *split_files_missing(struct split_files *files);

/* One of them was changed while it was read. */
bool split_files_have_changed(const struct split_files *files);

#endif
