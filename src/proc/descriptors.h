/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_DESCRIPTORS_H
#define STAKEOUT_PROC_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "model/descriptor.h"
#include "proc/process.h"

/* The descriptors of one process, or of a thread that has others: /proc/PID/fd and /proc/PID/fdinfo. */
struct descriptors {
	int links;
	int infos; /* -1: it cannot be opened */
	/* Whether files of a mount can be looked at without waiting for a server; `mount` is 0 when it is not known. */
	bool (*is_local)(uint64_t mount);
};

/* Those of a thread; 0: of the process. 0 or -errno: -EACCES when they are not for us to see. */
int descriptors_open(const struct process *process, pid_t tid, bool (*is_local)(uint64_t mount), struct descriptors *out);
void descriptors_close(struct descriptors *dirs);

/* What a descriptor is; names go to the arena. -ENOENT: there is none with this number. -ENOMEM. */
int descriptors_read(const struct descriptors *dirs, int fd, struct arena *arena, struct descriptor *out);

/* By its link alone, which costs less than all that descriptors_read() tells. */
bool descriptors_is_socket(const struct descriptors *dirs, int fd);

/* The kind, and the inode, by what the link says; for a path DESCRIPTOR_FILE. */
void descriptor_parse_link(const char *link, struct descriptor *out);

/* What the link says of a pipe or a socket: "pipe:[1234]". NULL when memory is exhausted. */
const char *descriptor_name(enum descriptor_kind kind, uint64_t inode, struct arena *arena);

/* By what the link says, of which 16 bytes are enough. What drivers tell of their devices, in fdinfo, may wait for these. */
bool descriptor_is_device(const char *link);

/* The file system that a file is of. */
uint64_t descriptor_device(const struct statx *st);

/* What its fdinfo tells besides; *mount is 0 where that does not tell. */
void descriptor_parse_info(const char *text, struct descriptor *out, uint64_t *mount);

/* What the kernel calls the protocol of a socket: "TCP", "UNIX-STREAM" … False: it does not tell. */
bool descriptors_protocol(const struct descriptors *dirs, int fd, uint64_t inode, char *out, size_t size);

/* The working directory of a thread, which may have one for itself (unshare(CLONE_FS)); its length, or -errno. */
ssize_t process_working_directory(const struct process *process, pid_t tid, char *buf, size_t size);

/* A line of an epoll's fdinfo. */
struct watched_descriptor {
	int fd;
	uint32_t events;
	uint64_t inode;
	uint64_t device; /* of the file system that the inode is of */
};

struct watched_descriptors {
	VEC_FIELDS(struct watched_descriptor);
};

/* False: it is no such line. */
bool descriptor_parse_watched(const char *line, struct watched_descriptor *out);

/*
 * The fdinfo of a descriptor; how many bytes there were, cut at `size`, or -errno. That of an epoll may not answer for ever: whoever has it
 * locked may wait for memory. For a helper: it neither allocates nor takes a lock.
 */
ssize_t descriptors_info(int infos, int fd, uint8_t *buf, size_t size);

/* What an epoll watches, from that. False when memory is exhausted. */
bool descriptors_watched(const uint8_t *info, size_t len, struct watched_descriptors *out);

#endif
