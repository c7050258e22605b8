/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_WAIT_H
#define STAKEOUT_MODEL_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a blocked thread waits for, and who could end that. */

enum wait_kind {
	WAIT_NOTHING, /* it runs, or it is not known */
	WAIT_MUTEX,
	WAIT_READ_LOCK,	 /* of a lock for readers and writers, */
	WAIT_WRITE_LOCK, /* likewise */
	WAIT_CONDITION,
	WAIT_SEMAPHORE,
	WAIT_BARRIER,
	WAIT_ONCE,   /* for somebody to initialize something */
	WAIT_STREAM, /* a FILE of the C library */
	WAIT_JOIN,   /* for a thread to end */
	WAIT_FUTURE, /* the result of something */
	WAIT_PARKED, /* for another thread to unpark it */
	WAIT_FUTEX,  /* something of which no more is known */
	WAIT_READ,   /* for what others have to write to a descriptor, or a disk to deliver */
	WAIT_WRITE,  /* for others to read what fills it */
	WAIT_SYNC,   /* for a disk to have it */
	WAIT_ACCEPT,
	WAIT_CONNECT,
	WAIT_EVENTS, /* for any of several descriptors to be ready */
	WAIT_OPEN,   /* for a file that is looked up by its path */
	WAIT_CONTROL, /* something else on a descriptor, by ioctl() */
	WAIT_FILE_LOCK, /* on a descriptor, too */
	WAIT_KIND_COUNT,
};

/* "mutex", "read_lock" …; NULL for WAIT_NOTHING. */
const char *wait_kind_name(enum wait_kind kind);
enum wait_kind wait_kind_named(const char *name); /* WAIT_NOTHING: there is none */

static inline bool wait_is_on_descriptors(enum wait_kind kind)
{
	return kind >= WAIT_READ && kind <= WAIT_FILE_LOCK;
}

/* Who has it. */
enum wait_holder {
	HOLDER_NOT_RECORDED, /* by such a thing it cannot be known */
	HOLDER_NONE,	     /* nobody, at that moment: it is being handed on */
	HOLDER_THREAD,	     /* `owner` */
	HOLDER_READERS,	     /* readers: who they are is not recorded */
	HOLDER_ENDED,	     /* `owner`, which is no thread of the process, or not any more */
	HOLDER_COUNT,
};

/* "not_recorded", "none", "thread" … */
const char *wait_holder_name(enum wait_holder holder);

/* A process that can end a wait: it has the other end of a pipe or a socket, or a lock on a file. */
struct wait_peer {
	pid_t pid;
	const char *comm;
};

struct snap_wait; /* model/descriptor.h */

struct wait {
	enum wait_kind kind;
	uint64_t address; /* of the object; 0: of the word that it waits for, see `word` */
	uint64_t word;	  /* 0, if address is, too: that tells nothing */
	const char *path; /* of the file whose variable it is, and where in that; NULL: of none */
	uint64_t offset;
	const char *variable; /* its name, and where in that; NULL: not known */
	uint64_t variable_offset;
	enum wait_holder holder;
	pid_t owner;	 /* as this report numbers threads, if it is one of owner_pid; else as memory has it */
	pid_t owner_pid; /* 0: it is not known of which process it is */
	const struct wait_peer *peers; /* as long as none of them acts, it goes on; of a lock in memory: none, see `owner` */
	uint32_t npeers;
	bool peers_known; /* nobody else can end it */
	const struct snap_wait *on; /* the descriptors, or the file; NULL: it waits for none */
	bool shared;	/* it is one of several processes */
	bool timed;	/* it does not wait for ever */
	const char *owner_comm; /* of owner_pid, where that is not known to be looked at; else NULL */
	bool evident;	/* that it is this lock is beyond doubt, and so is that it has this number as its owner */
	bool certain;	/* the owner had it at the instant of the snapshot, and the thread was blocked by that; for descriptors: in that call */
};

#endif
