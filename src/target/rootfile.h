/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_ROOTFILE_H
#define STAKEOUT_TARGET_ROOTFILE_H

/*
 * Opening files whose names the target chose. What is opened may be a FIFO, a device or a link out of the target's
 * root, so a file is looked at before it is opened for reading, and links are followed inside the root only.
 */

/* A descriptor for reading, or -errno; -EINVAL when it is no regular file. root_fd -1 means our own root. */
int rootfile_open(int root_fd, const char *path);

/* The same, but -ELOOP when the last name of the path is a symbolic link, for places where anybody can make one. */
int rootfile_open_itself(int root_fd, const char *path);

/* Opens for reading what an O_PATH descriptor refers to, with the same check; `path_fd` stays open. */
int rootfile_reopen(int path_fd);

#endif
