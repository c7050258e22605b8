/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PRIVILEGE_MESSAGE_H
#define STAKEOUT_PRIVILEGE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Messages between processes of this program, over a socket of type SOCK_SEQPACKET, with at most one descriptor each. */

/* `fd` may be -1, and stays open. */
bool message_send(int socket, const void *message, size_t len, int fd);

/* How much was received, 0 at the end; *fd is -1 or the caller's. */
size_t message_receive(int socket, void *message, size_t room, int *fd);

#endif
