/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_WAIT_H
#define STAKEOUT_MODEL_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a blocked thread waits for, and who could end that. */

enum { WAIT_BYTES = 64 }; /* of memory that tell it, from the word on that the kernel compares */

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
	WAIT_CHANNEL,	   /* for a message, */
	WAIT_CHANNEL_ROOM, /* or for room in it, or for somebody who takes the message */
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

	/* Neither locks nor descriptors (wait/states.h). */
	WAIT_CHILD,	 /* for a child, or any, to end or stop */
	WAIT_VFORK,	 /* for a child that has its memory to execute a program or end */
	WAIT_TIME,	 /* it sleeps */
	WAIT_SIGNAL,
	WAIT_STOPPED,	 /* by a signal */
	WAIT_TRACED,	 /* its tracer has stopped it */
	WAIT_REAPER,	 /* it has ended, and its parent was not told yet */
	WAIT_FROZEN,	 /* with its control group */
	WAIT_THROTTLED,	 /* its control group has used up its share of CPU time */
	WAIT_CPU,	 /* it is ready to run */
	WAIT_FAULT,	 /* for a page of memory, */
	WAIT_SWAP,	 /* of what was swapped out, */
	WAIT_USERFAULT,	 /* that some process has to deliver */
	WAIT_DISK,
	WAIT_NFS,
	WAIT_FUSE,
	WAIT_REMOTE,	 /* another file system of the network */
	WAIT_SECCOMP,	 /* for a supervisor to decide on its system call */
	WAIT_KERNEL_LOCK,
	WAIT_SYSV_SEMAPHORE,
	WAIT_SYSV_MESSAGE, /* in a queue, */
	WAIT_SYSV_ROOM,	   /* or for room in it */
	WAIT_MESSAGE,	   /* likewise of POSIX queues */
	WAIT_ROOM,

	/* Of Python: its lock for all threads, */
	WAIT_GIL,
	WAIT_PYTHON_LOCK, /* objects of its own, */
	WAIT_PYTHON_RLOCK,
	WAIT_PYTHON_CONDITION, /* and what its library makes of these */
	WAIT_PYTHON_EVENT,
	WAIT_PYTHON_SEMAPHORE,
	WAIT_PYTHON_BARRIER,
	WAIT_PYTHON_ITEM,  /* of a queue; */
	WAIT_PYTHON_ROOM,  /* in one; */
	WAIT_PYTHON_DONE,  /* that all items of one are dealt with */
	WAIT_PYTHON_FUTURE,
	WAIT_PYTHON_JOIN, /* a thread's end */

	/* Of Java: */
	WAIT_MONITOR,	   /* to enter it: synchronized */
	WAIT_NOTIFICATION, /* Object.wait() */
	WAIT_JAVA_LOCK,	   /* of java.util.concurrent, */
	WAIT_JAVA_CONDITION,
	WAIT_JAVA_SEMAPHORE,
	WAIT_JAVA_LATCH,
	WAIT_JAVA_PARK, /* and anything else that ends when somebody unparks the thread */
	WAIT_JAVA_JOIN,

	/* Of Go's runtime (wait/go_waits.h): */
	WAIT_GO_WORK,	   /* for a goroutine that is ready */
	WAIT_GO_GOROUTINE, /* for the one that only this thread can run */
	WAIT_GO_START,	   /* for all threads to go on after a stop, */
	WAIT_GO_STOP,	   /* or for the others to stop */
	WAIT_GO_MONITOR,   /* for its next look at the others */
	WAIT_GO_TEMPLATE,  /* for threads that it is to start */
	WAIT_GO_SIGNAL,	   /* to hand on to the program */
	WAIT_GO_LOCK,	   /* of the runtime itself */
	WAIT_GO_NOTE,	   /* for anything else from another thread */
	WAIT_KIND_COUNT,
	WAIT_FIRST_STATE = WAIT_CHILD, /* the first and the last of that block */
	WAIT_LAST_STATE = WAIT_ROOM,
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
	HOLDER_ENDED,	     /* `owner`, which is no thread of the process, or not any more; 0: which thread that was is not recorded */
	HOLDER_INFERRED,     /* `owner`, by what it does: the lock does not record it */
	HOLDER_COUNT,
};

/* "not_recorded", "none", "thread" … */
const char *wait_holder_name(enum wait_holder holder);

/* What happens when the thread that has a mutex of the C library takes it again. */
enum mutex_type {
	MUTEX_UNKNOWN,
	MUTEX_NORMAL,	      /* it waits for itself, for ever */
	MUTEX_RECURSIVE,      /* it has it twice */
	MUTEX_ERROR_CHECKING, /* it gets EDEADLK */
	MUTEX_ADAPTIVE,	      /* as with a normal one; who waits spins for a while before it sleeps */
	MUTEX_TYPE_COUNT,
};

/* "normal", "recursive" …; NULL for MUTEX_UNKNOWN. */
const char *mutex_type_name(enum mutex_type type);

/* What pthread_mutexattr_set…() made of a mutex. */
struct mutex_attributes {
	enum mutex_type type;
	bool robust;   /* the next one is told that its owner has ended */
	bool inherits; /* its owner gets the priority of those who wait */
};

/* A process that can end a wait: it has the other end of a pipe or a socket, or a lock on a file; or it is a child, a tracer, who has a CPU. */
struct wait_peer {
	pid_t pid; /* 0: it is one of another namespace */
	const char *comm;
	char state; /* as in /proc/PID/stat; 0: not known */
};

/* How exactly the time is known that is left of a wait. */
enum wait_left {
	LEFT_UNKNOWN,
	LEFT_EXACT,
	LEFT_ABOUT,   /* when it began is known by when the thread left its CPU */
	LEFT_AT_MOST, /* when it began is not known, or it was woken since and went on */
	LEFT_COUNT,
};

/* "exact", "about", "at_most"; NULL for LEFT_UNKNOWN. */
const char *wait_left_name(enum wait_left left);

/* What is waited for where a file system of that type does not answer: WAIT_DISK to WAIT_REMOTE. */
enum wait_kind wait_medium_of(const char *filesystem);

/* What there is to say of waits that are neither for locks nor for descriptors, and of the time that is left of any. */
struct wait_state {
	enum wait_left left;
	int64_t left_ns;
	uint64_t signals;    /* WAIT_SIGNAL: bit n - 1 for signal n; 0: any that it does not block */
	int stop_signal;     /* WAIT_STOPPED: which; 0: not known */
	uint32_t children;   /* WAIT_CHILD: how many may end it; `peers` are the first of them */
	bool any_child;	     /* it waits for the first of them, whichever that is, */
	bool child_group;    /* but in a process group, which others may join; */
	bool children_known; /* and it is known which there are */
	bool in_fault;	     /* for a page of memory */
	enum wait_kind medium; /* of a wait on a descriptor: what the kernel waits for there, WAIT_DISK to WAIT_KERNEL_LOCK; WAIT_NOTHING: not known */
	bool has_key;
	uint32_t key;	   /* of a System V object, and its number; of semaphores which one of the set */
	int32_t id, index;
	const char *place; /* the control group, the file, the queue, or the function of the kernel; NULL: not known */
	const char *filesystem; /* that the file is on: its type, */
	const char *device;	/* and where it comes from; NULL: not known */
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
	bool for_goroutines; /* WAIT_EVENTS: a thread of Go looks after descriptors for goroutines, which have no thread */
	const char *type; /* of the object, as a language runtime calls it: its class; NULL: not known */
	uint64_t count;	  /* how often the owner has taken it; 0: not known */
	struct mutex_attributes mutex; /* WAIT_MUTEX */
	const char *owner_comm; /* of owner_pid, where that is not known to be looked at; of a thread of the process that was not: its name; else NULL */
	bool owner_lives; /* a thread of another process has its number */
	bool evident;	/* that it is this lock is beyond doubt, and so is that it has this number as its owner */
	bool certain;	/* the owner had it at the instant of the snapshot, and the thread was blocked by that; for descriptors: in that call */

	struct wait_state state;
};

/*
 * What a language runtime knows of a wait, where the system call knows only of a futex underneath. What a thread of the runtime does not
 * tell (which function of a library waits) is told by its frames, later.
 */
struct runtime_wait {
	enum wait_kind kind; /* WAIT_NOTHING: it knows of none */
	uint64_t address;    /* of the object; 0: not known */
	const char *type;
	enum wait_holder holder;
	pid_t owner;	/* if HOLDER_THREAD or HOLDER_INFERRED: as this report numbers threads */
	pid_t subject;	/* the thread that the object stands for: who waits for a notification of it may wait for its end; 0: for none */
	uint64_t count; /* as in struct wait */
	bool later;	/* it was read when all threads had been: it is of the last look at them */
	bool endless;	/* it goes on whatever the time limit of the system call is */
	bool doubtful;	/* what was read may not belong together */
};

/* `owner` is a thread that has it, whoever says so. */
static inline bool wait_has_owner(const struct wait *w)
{
	return w->holder == HOLDER_THREAD || w->holder == HOLDER_INFERRED;
}

static inline bool wait_is_state(const struct wait *w)
{
	return w->kind >= WAIT_FIRST_STATE && w->kind <= WAIT_LAST_STATE;
}

#endif
