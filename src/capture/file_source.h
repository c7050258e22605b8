/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_FILE_SOURCE_H
#define STAKEOUT_CAPTURE_FILE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"
#include "base/vec.h"
#include "kernel/open_files.h"

struct arena;
struct capture;
struct descriptor;
struct held;
struct tcp_ends;
struct wanted_socket;
struct wanted_sockets;

/* Where many descriptors are looked at in one read, by BPF. It takes a millisecond to load, so only when that pays; once for all processes. */
struct file_source {
	struct open_files *files;
	bool refused;
	bool counted, tells_tcp; /* what sockets of TCP are, since there are so many on the machine that the kernel's list of them is long */
	VEC(struct tcp_ends) far; /* of sockets that it told of: the other ends, */
	struct u64map far_of;	  /* by the inodes of these sockets */
};

/* Not where BPF was refused for the threads, or is not wanted; nor where numbers in /proc are others than the kernel's. */
bool file_source_may_be_bpf(const struct capture *capture);

/* NULL: it cannot be had, or is not to be used; /proc tells the same. */
struct open_files *file_source_get(struct file_source *source, const struct capture *capture);
bool file_source_tells_tcp(struct file_source *source, const struct capture *capture);
void file_source_deinit(struct file_source *source);

/* Who has these things, as holders_find() tells it; but a process is hidden from nobody here. 0 or -errno: then nothing was found. */
int file_source_holders(struct open_files *files, struct held *things, size_t n);

/*
 * Of a record of the kind FILE_TCP: what the socket is. Which one is at its other end, if that is wanted and within the machine, is found with those
 * who have it: keeps what it is known by. False when memory is exhausted.
 */
bool file_source_tell(const struct file_record *record, struct wanted_sockets *wanted, struct arena *arena);
bool file_source_keep_far(struct file_source *source, const struct wanted_socket *socket);
const struct tcp_ends *file_source_far(const struct file_source *source, uint64_t inode); /* NULL: it is not known, or not here */

/* What a record of a pass over one process tells, as descriptors_read() does. False when memory is exhausted. */
bool file_source_describe(const struct file_record *record, struct arena *arena, struct descriptor *out);

#endif
