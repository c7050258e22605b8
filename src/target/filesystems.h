/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_FILESYSTEMS_H
#define STAKEOUT_TARGET_FILESYSTEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which file systems may never answer: those with a server behind them. Known by their device numbers, which are the same
 * in all mount namespaces, from the tables of mounts that we and our targets see: the file system itself need not
 * be touched. One table for the whole program, since one that did not answer once is not asked again. Any thread may call.
 */

/* Learns the mounts that a process sees; `dir_fd` is its directory in /proc, its mount namespace is looked at once. */
void filesystems_learn(int dir_fd);

/* False when reading from it may block for ever, or when it is not known. Reads no file: threads may be held. */
bool filesystems_is_local(uint32_t dev_major, uint32_t dev_minor);

/* True for memory that is a file, such as a memfd or a file in /dev/shm. Likewise reads no file. */
bool filesystems_is_memory(uint32_t dev_major, uint32_t dev_minor);

/* The same by the number of a mount (STATX_MNT_ID): files of btrfs have device numbers that no mount has. */
bool filesystems_is_local_mount(uint64_t id);

/* False: nothing that is known has a server behind it, so any path can be followed without fear. */
bool filesystems_any_remote(void);

/*
 * It did not answer: complains about it, by path or device, and it is not asked again. For a path the file system is
 * the one that is mounted nearest to it, as far as we know.
 */
void filesystems_give_up(uint32_t dev_major, uint32_t dev_minor, const char *what);
void filesystems_give_up_path(const char *path);

/* True when it did not answer before. */
bool filesystems_is_dead(uint32_t dev_major, uint32_t dev_minor);
bool filesystems_is_dead_path(const char *path);

/* Forgets all of it, and closes what was opened. */
void filesystems_forget(void);

#endif
