/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_MAPPED_FILE_H
#define STAKEOUT_TARGET_MAPPED_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "elf/image.h"
#include "model/maps.h"

/*
 * The file behind a mapping, as the target sees it: through /proc/PID/map_files, then below its root, checked by device
 * and inode, so that another mount namespace, a chroot, a deleted file or a memfd are found.
 */

struct target;

/*
 * Opens it for reading. With `ignore_deleted` whatever has the path of a deleted one now. A descriptor, or -errno. As
 * with rootfile_open() it may be that of a copy; *st (may be NULL) is that of the file.
 */
int mapped_file_open(const struct target *target, const struct map_entry *entry, bool ignore_deleted, struct err *err,
		     struct stat *st);

/* As image_identity_of(); 0 when it may not be asked for. Costs a quarter of opening it. */
uint64_t mapped_file_identity(const struct target *target, const struct map_entry *entry);

/* For a snapshot from a file: what this machine has at that path, if it has the recorded build-id. */
int mapped_file_open_recorded(const struct map_entry *entry, struct err *err, struct image **out);

#endif
