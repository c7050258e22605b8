/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_HOLDERS_H
#define STAKEOUT_PROC_HOLDERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "model/descriptor.h"

/* A process that has a descriptor of it. */
struct holder {
	pid_t pid;
	char comm[16 + 1];
	bool reads, writes; /* what its descriptors are for */
};

/* A pipe, a fifo or a socket, and all who have it. */
struct held {
	enum descriptor_kind kind;
	uint64_t inode;
	const char *path; /* of a fifo */
	pid_t pid;	  /* of a pipe or a fifo: who waits for it has it, */
	int fd;		  /* by this descriptor */
	VEC(struct holder) holders;
	bool all; /* nobody else has it, as far as processes can be seen at all */
};

/* Looks through the descriptors of all processes, once, for all of these things. *refused: some are not for us to see. 0 or -errno. */
int holders_find(struct held *things, size_t n, bool *refused);

/* For other ways to find them. The holder with this number, which may be a new one; NULL when memory is exhausted. */
struct holder *holders_add(struct held *thing, pid_t pid);

/* When all are found: puts them in order, and decides whether nobody else has it; `all`: every process that we can know of was looked at. */
void holders_judge(struct held *things, size_t n, bool all);

#endif
