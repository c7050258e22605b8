/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_SOCKET_ENDS_H
#define STAKEOUT_PROC_SOCKET_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chains.h"
#include "base/vec.h"

struct diag_socket;

/* The two ends of a connection. An address of IPv4 is written as IPv6 has it (::ffff:a.b.c.d), whichever family the socket is of. */
struct inet_ends {
	uint8_t local[16], remote[16];
	uint16_t local_port, remote_port;
};

void inet_ends_of(const struct diag_socket *socket, struct inet_ends *out);
bool inet_ends_are_of_ipv4(const struct inet_ends *ends);

/* As the socket at the other end has them. */
void inet_ends_other(const struct inet_ends *ends, struct inet_ends *out);

/* Both ends are on this machine, as far as addresses tell. */
bool inet_ends_are_here(const struct inet_ends *ends);

struct socket_end {
	struct inet_ends ends;
	uint64_t inode; /* 0: no descriptor leads to it */
};

/* Sockets of connections within the machine: who is at one end has the same addresses as who is at the other, in the other order. */
struct socket_ends {
	VEC_FIELDS(struct socket_end);
	struct chains by_ends;
};

bool socket_ends_add(struct socket_ends *all, const struct inet_ends *ends, uint64_t inode); /* false when memory is exhausted */
void socket_ends_deinit(struct socket_ends *all);

/* The inode of the socket at the other end. False: it is not there, or there are several, on several interfaces. */
bool socket_ends_find_other(const struct socket_ends *all, const struct inet_ends *ends, uint64_t *inode);

#endif
