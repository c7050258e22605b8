/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_HOLDERS_H
#define STAKEOUT_PROC_HOLDERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "model/descriptor.h"
#include "proc/socket_ends.h"

/* A process that has a descriptor of something. */
struct holder {
	pid_t pid;
	char comm[16 + 1];
	bool reads, writes; /* what its descriptors are for */
};

struct holders {
	VEC_FIELDS(struct holder);
	bool all; /* there are some, and nobody else, as far as processes can be seen at all */
};

/* Where the socket at the other end of a connection is, as that has it. */
struct tcp_ends {
	struct inet_ends ends;
	uint64_t net; /* where the kernel has its network namespace */
};

/* A pipe, a fifo or a socket, and all who have it. */
struct held {
	enum descriptor_kind kind;
	uint64_t inode;
	uint64_t device;  /* of a fifo: numbers of inodes are those of a file system */
	const char *path; /* of a fifo, one of them */
	pid_t pid;	  /* of a pipe or a fifo: who waits for it has it, */
	int fd;		  /* by this descriptor, */
	bool own_table;	  /* which is one of a thread that has a table for itself */
	const struct tcp_ends *far; /* of a socket: by these the inode is found, too; NULL: it is known */
	struct holders holders;
};

/*
 * Looks through the descriptors of all processes, once, for all of these things. *refused: some are not for us to see. is_local(): whether a mount
 * of a process, whose directory in /proc is given, is of a file system without a server; others are not asked for anything. 0 or -errno.
 */
int holders_find(struct held *things, size_t n, bool (*is_local)(int dir_fd, uint64_t mount), bool *refused);

/* For other things, and other ways to find them. The holder with this number, which may be a new one; NULL when memory is exhausted. */
struct holder *holders_add(struct holders *holders, pid_t pid);
void holder_read_name(struct holder *holder); /* if it has none yet */

/* When all are found: puts them in order, and decides whether nobody else has it; `all`: every process that we can know of was looked at. */
void holders_judge(struct holders *holders, bool all);

#endif
