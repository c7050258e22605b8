/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_NEW_FILES_H
#define STAKEOUT_OFFCPU_FEED_NEW_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "model/maps.h"
#include "target/roots.h"

/*
 * Files with code that are not known yet, opened as soon as a process was seen to have them: making their tables takes
 * longer than a short-lived process is there. Each only once, and those first that take the least for each process that was
 * seen to have them. Any thread may add and take.
 */
struct new_files;
struct target;

struct new_file {
	int fd;
	struct stat st; /* of the file, if what was opened is a copy */
	char *path;
	struct root *root; /* of who has it, or NULL */
	uint64_t offset; /* where its code is mapped from */
	uint64_t key;
	uint32_t users; /* how often it was added */
};

struct new_files *new_files_create(struct roots *roots); /* these must outlive it; NULL when memory is exhausted */
void new_files_destroy(struct new_files *files);

/*
 * `identity` is that of the file (image.h), and not 0: then looking at it does not block. Without room or descriptors it is
 * not opened: it will be when its process is read, or another that has it.
 */
void new_files_add(struct new_files *files, const struct target *target, const struct map_entry *entry, uint64_t identity);

/* False: there are none. The file is the caller's. */
bool new_files_take(struct new_files *files, struct new_file *out);
void new_files_drop(struct new_files *files, struct new_file *file);

#endif
