/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_PEERS_H
#define STAKEOUT_CAPTURE_PEERS_H

#include "capture/besides.h"
#include "capture/file_source.h"

/* Finds who has the other ends of the pipes, fifos and sockets that threads wait for, by one search for all. 0 or -ENOMEM. */
int find_peers(struct besides *all, size_t n, struct file_source *source);

/* Says what is not searched for in processes of others, for want of rights. */
void peers_note_refusal(struct snapshot *snap, const char *what);

#endif
