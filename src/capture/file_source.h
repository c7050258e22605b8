/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_FILE_SOURCE_H
#define STAKEOUT_CAPTURE_FILE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"
#include "base/vec.h"
#include "kernel/open_files.h"

struct arena;
struct blocking_call;
struct capture;
struct descriptor;
struct file_ahead;
struct held;
struct snap_syscall;
struct snapshot;
struct tcp_ends;
struct wanted_socket;
struct wanted_sockets;

enum { FEW_FILES = 128 }; /* these are looked at one by one before BPF is loaded */

struct file_look {
	struct file_wants wants;
	struct file_records records;
	struct file_records again; /* of all processes once more: somebody was started meanwhile */
	bool done;
};

/* Where many descriptors are looked at in one read, by BPF. It takes a millisecond to load, so only when that pays; once for all processes. */
struct file_source {
	struct open_files *files;
	bool refused;
	bool decided, tells_tcp; /* what sockets of TCP are */
	struct file_look of_one, of_all; /* the last ones, */
	const struct file_ahead *ahead;	 /* and one before; NULL: there was none */
	VEC(struct tcp_ends) far; /* of sockets that it told of: the other ends, */
	struct u64map far_of;	  /* by the inodes of these sockets */
};

/* Not where BPF was refused for the threads, or is not wanted; nor where numbers in /proc are others than the kernel's. */
bool file_source_may_be_bpf(const struct capture *capture);

bool file_source_tells_tcp(struct file_source *source, const struct capture *capture);
bool file_source_list_is_long(void); /* that the kernel has of all sockets of TCP: to load what tells of them takes less */
void file_source_deinit(struct file_source *source);

/* What was loaded and seen ahead is used from now on. NULL: nothing was. */
void file_source_take_ahead(struct file_source *source, struct file_ahead *ahead);

/* Pipes, sockets and eventfds of a thread, see open_files_look(); good until the next time. NULL: they cannot be had, /proc tells the same. */
const struct file_look *file_source_of(struct file_source *source, const struct capture *capture, pid_t tid, const struct file_wants *wants);

/* Who has these things, as holders_find() tells it; but a process is hidden from nobody here. 0 or -errno: then nothing was found. */
int file_source_holders(struct file_source *source, const struct capture *capture, struct held *things, size_t n);

/* Looks at what look->wants says. 0 or -errno. */
int file_look_at_one(struct open_files *files, pid_t tid, struct file_look *look);
void file_look_deinit(struct file_look *look);

size_t file_wants_count(const struct file_wants *wants);
void file_wants_blocked(struct file_wants *wants, const struct blocking_call *call, const struct snap_syscall *syscall);

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
