/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_DESCRIPTOR_H
#define STAKEOUT_MODEL_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/wait.h"

/* What a descriptor of a process leads to, as far as a thread waits for it. What is not known is NULL, 0, or as told. */

enum descriptor_kind { /* append-only: written to saved snapshots */
	DESCRIPTOR_UNKNOWN = 0, /* nothing was to be had of it */
	DESCRIPTOR_FILE = 1,
	DESCRIPTOR_DIRECTORY = 2,
	DESCRIPTOR_PIPE = 3,
	DESCRIPTOR_FIFO = 4, /* a pipe that has a path */
	DESCRIPTOR_SOCKET = 5,
	DESCRIPTOR_EVENTFD = 6,
	DESCRIPTOR_TIMERFD = 7,
	DESCRIPTOR_SIGNALFD = 8,
	DESCRIPTOR_INOTIFY = 9,
	DESCRIPTOR_FANOTIFY = 10,
	DESCRIPTOR_EPOLL = 11,
	DESCRIPTOR_PIDFD = 12,
	DESCRIPTOR_IO_URING = 13,
	DESCRIPTOR_TERMINAL = 14,
	DESCRIPTOR_DEVICE = 15, /* of characters or blocks */
	DESCRIPTOR_FUSE = 16,	/* where a server of a file system takes its requests */
	DESCRIPTOR_USERFAULTFD = 17,
	DESCRIPTOR_OTHER = 18, /* `name` tells */
	DESCRIPTOR_KIND_COUNT,
};

/* "file", "pipe" …; "unknown". */
const char *descriptor_kind_name(enum descriptor_kind kind);

struct descriptor_socket {
	const char *protocol; /* "tcp", "unix" … */
	const char *state;    /* "established", "listening" …; NULL: it has none */
	const char *local;    /* "10.0.0.5:41022", a path … */
	const char *remote;
	uint64_t peer; /* inode of the socket at the other end, if that is on this machine */
	uint32_t unread, unsent; /* bytes in its queues; of one that listens, connections that nobody has accepted yet */
	bool listening;
	bool accepted; /* it is one of those that others have connected to a socket that listens */
	bool endless;  /* it is known to have no time limit for what is waited for */
};

struct descriptor {
	int fd; /* -1: there is none */
	enum descriptor_kind kind;
	const char *name;  /* a path, or what the kernel calls it: "pipe:[4711]" */
	uint64_t inode;	   /* of pipes, fifos and sockets */
	uint64_t device;   /* of a fifo: its file system, as statx() tells it; not saved */
	uint32_t flags;	   /* of open(), but for O_CLOEXEC */
	uint32_t events;   /* that are waited for in a set: POLLIN … */
	int64_t offset;	   /* in a file; -1: not known */
	int64_t left_ns;   /* until a timer expires; -1: it is not set, or that is not known */
	uint64_t count;	   /* of an eventfd */
	pid_t pid;	   /* of a pidfd */
	struct descriptor_socket socket;
	const struct wait_peer *peers; /* who has the other end of a pipe or a socket */
	uint32_t npeers;
	bool peers_known; /* nobody else has it */
};

/* Those that a thread waits for at once, or that an epoll watches. */
struct descriptor_set {
	struct descriptor *data; /* the first of them */
	uint32_t len;
	uint32_t total; /* all of them */
	uint32_t counts[DESCRIPTOR_KIND_COUNT];
	uint32_t listeners; /* of the sockets */
};

enum lock_kind { /* append-only: written to saved snapshots */
	LOCK_NONE = 0,
	LOCK_BY_FLOCK = 1, /* of an open file, whoever has that */
	LOCK_BY_FCNTL = 2, /* of a process */
	LOCK_BY_OFD = 3,   /* of an open file, by fcntl() */
	LOCK_KIND_COUNT,
};

/* A lock on a file as it is asked for: bytes from `start` to `end`, with that; UINT64_MAX: to wherever the file ends. */
struct wanted_lock {
	enum lock_kind kind;
	bool writes; /* nobody else may have one */
	uint64_t start, end;
};

/* What a thread waits for in a system call on descriptors or files: seen while it was blocked there, see capture/besides.h. */
struct snap_wait {
	pid_t tid;
	enum wait_kind kind;
	const char *path;    /* of the file that it wants to open */
	const char *address; /* that it connects to */
	bool own_table; /* its thread has descriptors for itself; not saved */
	bool guessed; /* which of two descriptors it is: then nobody is known to be the only one who can end it */
	struct descriptor on;
	struct descriptor_set set;
	struct wanted_lock lock; /* WAIT_FILE_LOCK, on `on`; its peers are who have the lock */
};

#endif
