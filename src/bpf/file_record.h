/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_FILE_RECORD_H
#define STAKEOUT_BPF_FILE_RECORD_H

/* What the iterator over open files is asked for, and what it writes for each descriptor. Shared by the BPF program and its reader. */

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#endif

enum { FILE_WANTED_WORDS = 1024 };

/* What is to be shown, by numbers: of descriptors where those of one thread are looked at, of inodes where those of all processes are. */
struct file_wants {
	__u64 numbers[FILE_WANTED_WORDS]; /* a bit for each; some that are not wanted have the same one */
	__u32 any_fifo; /* of all processes: all pipes and fifos, */
	__u32 any_tcp;	/* and with this those sockets of TCP whose file_ports() are wanted */
};

static inline void file_wants_add(struct file_wants *wants, __u64 number)
{
	wants->numbers[number / 64 % FILE_WANTED_WORDS] |= (__u64)1 << number % 64;
}

static inline __u32 file_wants_has(const struct file_wants *wants, __u64 number)
{
	return wants->numbers[number / 64 % FILE_WANTED_WORDS] >> number % 64 & 1;
}

/* What is wanted of a connection within the machine; not the same for its two ends. */
static inline __u32 file_ports(__u16 local, __u16 remote)
{
	return (__u32)local * 7 + remote;
}

/* In a look at all processes also sockets of TCP with these ports: those of other connections, too. */
static inline void file_wants_add_tcp(struct file_wants *wants, __u16 local_port, __u16 remote_port)
{
	wants->any_tcp = 1;
	file_wants_add(wants, file_ports(local_port, remote_port));
}

struct file_pass {
	struct file_wants wants;
	__u32 target_tid; /* the descriptors of this thread; 0: pipes and sockets of all processes */

	/* Of the thread that is looked at. */
	__u32 thread; /* by the kernel's number */
	__u32 tgid;
	__u32 passed_over;
	__u64 table; /* of its descriptors */
	char comm[16];
};

enum file_kind {
	FILE_OTHER = 0,
	FILE_PIPE = 1, /* in a pass over all processes a fifo, too */
	FILE_SOCKET = 2,
	FILE_EVENTFD = 3,
	FILE_TCP = 4, /* only if the loader wants it, and in a pass over all processes with any_tcp; a struct file_tcp follows */
};

enum file_mode { FILE_READS = 1, FILE_WRITES = 2 }; /* as the kernel has them */

struct file_record {
	__u32 tgid;
	__u32 fd;
	__u32 kind;
	__u32 mode;
	__u32 flags; /* of open() */
	__u32 none;
	__u64 inode; /* its number, */
	__u64 place; /* and where the kernel has it */
	__u64 count; /* of an eventfd */
	char comm[16]; /* of the process */
};

/* As the kernel has it. */
struct file_tcp {
	__u8 local[16], remote[16]; /* of IPv4 the first four bytes */
	__u16 local_port, remote_port;
	__u8 family, state;
	__u16 none;
	__u32 unread, unsent; /* bytes; of one that listens, connections that wait, and how many of these there may be */
	__u64 net; /* where its network namespace is */
};

/* What follows it. */
static inline const struct file_tcp *file_tcp_of(const struct file_record *record)
{
	return (const struct file_tcp *)(record + 1);
}

static_assert(sizeof(struct file_record) == 64, "file_record has no hidden padding");
static_assert(sizeof(struct file_tcp) == 56, "file_tcp has no hidden padding");

#endif
