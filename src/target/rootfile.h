/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_ROOTFILE_H
#define STAKEOUT_TARGET_ROOTFILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "elf/image.h"

/*
 * Opening files whose names the target chose. What is opened may be a FIFO, a device or a link out of the target's
 * root, so a file is looked at before it is opened for reading, and links are followed inside the root only. It may also
 * be on a file system that never answers: then a helper opens and reads it, for as long as there is patience, and what is
 * given out is a copy.
 */

/*
 * A descriptor for reading, or -errno; -EINVAL when it is no regular file, -ETIMEDOUT when the file system did not
 * answer. root_fd -1 means our own root. *st (may be NULL) is that of the file, not of a copy.
 */
int rootfile_open(int root_fd, const char *path, struct stat *st);

/* Likewise, but a symbolic link at the path itself is not followed: -ELOOP. For places where anybody can make one. */
int rootfile_open_itself(int root_fd, const char *path, struct stat *st);

/* The same as rootfile_open(), as an image. */
int rootfile_open_image(int root_fd, const char *path, struct err *err, struct image **out);

/* Only looks at it. */
int rootfile_stat(int root_fd, const char *path, struct stat *st);

/* Where a path of ours leads when all links are followed, for free(); NULL when it leads nowhere or does not answer. */
char *rootfile_real_path(const char *path);

/* 0, or -ETIMEDOUT when something on the way to a path of ours did not answer just now. It need not exist. */
int rootfile_probe(const char *path);

/* True when reading what an O_PATH descriptor refers to cannot block for ever. Does not ask the file system. */
bool rootfile_is_local(int path_fd);

/* Opens for reading what an O_PATH descriptor of a local file refers to, with the same check; `path_fd` stays open. */
int rootfile_reopen(int path_fd, struct stat *st);

/*
 * What a helper does to give a file out: opens it by itself, without fear, and copies what was opened (`fd`, or -errno;
 * closed) into memory that cannot change any more.
 */
int rootfile_open_directly(int root_fd, const char *path, struct stat *st);
int rootfile_copy(int fd);

/* Makes an image of a descriptor that rootfile_open() gave. */
int rootfile_to_image(int fd, const struct stat *st, struct err *err, struct image **out);

#endif
