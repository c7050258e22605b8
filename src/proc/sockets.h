/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_SOCKETS_H
#define STAKEOUT_PROC_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/descriptor.h"
#include "proc/descriptors.h"
#include "proc/process.h"
#include "proc/socket_ends.h"

enum { SOCKET_NAME_SIZE = 112 }; /* the longest name of a unix socket, in words */

/*
 * What sockets are: their protocols, states, addresses and other ends, by inode. The kernel is asked through SOCK_DIAG, in the network
 * namespace of the process that has them; where such a socket cannot be had there, /proc/PID/net is read, which tells less.
 */
struct sockets {
	uint64_t ns; /* inode of the network namespace, */
	uint64_t ns_place; /* and where the kernel has it; 0: not known yet, */
	unsigned tries; /* after so many searches */
	int diag;    /* SOCK_DIAG, or -1 */
	int net;     /* /proc/PID/net, for what that does not tell; or -1 */
	uint32_t requests; /* that were sent: they are numbered */
	char asked[SOCKET_NAME_SIZE]; /* who listens under this name was asked for last; "": nobody was */
	uint64_t listener;	      /* the answer */
};

/* 0 or -errno when neither can be had. */
int sockets_open(const struct process *process, struct sockets *out);
void sockets_close(struct sockets *sockets);
bool sockets_are_of(const struct sockets *sockets, const struct process *process); /* of its network namespace */

/* How many sockets of TCP the machine has, in all namespaces: all are gone through to find one by its inode. 0: that is not known. */
uint64_t sockets_count_tcp(void);

struct wanted_socket {
	uint64_t inode;
	int fd;		    /* a descriptor of it */
	bool listens;	    /* it does, if it is a stream: somebody accepts connections there */
	bool wants_peer;    /* who has the other end is of interest */
	bool found, tried;
	struct inet_ends ends; /* of IP */
	uint64_t net; /* of one that was told: where the kernel has its network namespace; else 0 */
	struct descriptor_socket facts;
};

struct wanted_sockets {
	VEC_FIELDS(struct wanted_socket);
	struct u64map by_inode;
	bool only_listening; /* there are so many that only those are looked for */
};

/* Each inode is there once. NULL when memory is exhausted; good until the next one. */
struct wanted_socket *wanted_sockets_add(struct wanted_sockets *wanted, uint64_t inode, int fd);
/* Tells what a socket of TCP is: all but which one is at the other end, which is searched for only where none is there yet. False when memory is exhausted. */
bool wanted_sockets_tell(struct wanted_sockets *wanted, int fd, const struct diag_socket *socket, uint64_t net, struct arena *arena);
const struct wanted_socket *wanted_sockets_find(const struct wanted_sockets *wanted, uint64_t inode); /* NULL: it is not there */
void wanted_sockets_deinit(struct wanted_sockets *wanted);

/*
 * Finds what they are; `dirs` are the descriptors of the process that has them. 0 or -ENOMEM: of what could not be found the protocol is
 * told at most.
 */
int sockets_find(struct sockets *sockets, struct wanted_sockets *wanted, const struct descriptors *dirs, struct arena *arena);

/*
 * The inode of the unix socket that listens under this name, as socket_address() writes it; 0: it is not known. Several may, such as the old one
 * of a server that was restarted: which of them is connected to is not known.
 */
uint64_t sockets_find_listener(struct sockets *sockets, const char *name);

/* A socket as the kernel tells it. */
struct diag_socket {
	uint64_t inode;
	uint64_t peer; /* of a unix socket */
	uint8_t family, type, state;
	uint8_t local[16], remote[16]; /* addresses of IP, 4 or 16 bytes */
	uint16_t local_port, remote_port;
	uint32_t scope; /* the interface that it is bound to */
	uint32_t unread, unsent;
	const char *name; /* of a unix socket; not terminated, may begin with NUL */
	size_t name_len;
	bool has_name;
};

/*
 * Reads those messages in a reply that answer the request of this number: others are left of one whose answer was not read to its end. Returns 2
 * when there are none, 1 when more replies follow, 0 at the end, or -errno that the kernel reports; -EBADMSG: damaged.
 */
int sockets_parse(const void *reply, size_t len, uint32_t request, void (*visit)(void *arg, const struct diag_socket *socket), void *arg);

/* A line of /proc/net/tcp, udp, or with is_unix of /proc/net/unix. False: it is none. */
bool sockets_parse_line(const char *line, bool is_unix, struct diag_socket *out);

/* What it is in words. False when memory is exhausted. */
bool socket_describe(const struct diag_socket *socket, const char *protocol, struct arena *arena, struct descriptor_socket *out);

/* "10.0.0.9:5432", "[::1]:80", a path, "@abstract": an address as a program gives it to connect(); NULL when it is none that is known. */
const char *socket_address(const void *address, size_t len, struct arena *arena);

#endif
