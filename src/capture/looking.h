/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_LOOKING_H
#define STAKEOUT_CAPTURE_LOOKING_H

#include "base/map.h"
#include "capture/besides.h"
#include "capture/file_source.h"
#include "proc/descriptors.h"
#include "proc/sockets.h"

/* The descriptors of one process, or of a thread that has others: each is looked at once, however many threads wait for it. */

struct descriptors_seen {
	VEC_FIELDS(struct descriptor);
};

/* What an epoll watches. */
struct epoll_seen {
	int fd;
	struct descriptor_set set;
};

/* The sockets of a set that is too large to be kept whole: of these only those are found that listen. */
struct crowd {
	const struct descriptor *kept; /* whose set it is */
	uint64_t *inodes;
	size_t len;
};

struct told_socket {
	struct file_record file;
	struct file_tcp tcp; /* right behind it, see file_tcp_of() */
};

struct looking {
	struct besides *besides;
	struct snapshot *snap;
	pid_t tid; /* whose table it is; 0: that of the process */
	size_t first; /* of snap->waits that are for what is in it */
	struct file_source *source;
	struct sockets *sockets; /* of the network namespace that was looked at last */
	struct descriptors dirs;
	bool is_open, refused;
	struct u64map known; /* by number, in `seen` */
	struct descriptors_seen seen;
	VEC(struct epoll_seen) epolls;
	bool looked_ahead; /* many were looked at by BPF, */
	VEC(struct told_socket) told; /* which may have told what sockets are */
	struct wanted_sockets wanted;
	struct wanted_sockets listening; /* of crowds */
	VEC(struct crowd) crowds;
	uint64_t socket_device; /* of the file system that sockets are of; 0: not known yet */
};

void looking_deinit(struct looking *l);

/* These are soon asked for: many of them are looked at in one read, where that can be done. 0 or -ENOMEM. */
int looking_ahead(struct looking *l, const struct file_wants *wants);

/* What a descriptor is, but for what kind of socket: 0, or -errno: -ENOENT when there is none with this number. */
int looking_at(struct looking *l, int fd, struct descriptor *out);

/* The same for a set; what is not there is DESCRIPTOR_UNKNOWN. 0 or -ENOMEM. */
int looking_add(struct looking *l, struct descriptors_seen *set, int fd, uint32_t events);
int looking_keep(struct looking *l, const struct descriptors_seen *set, struct descriptor_set *out);

/* What these epolls watch, all at once: a helper reads it, as it may not answer. 0 or -ENOMEM. */
int looking_read_epolls(struct looking *l, const int *epolls, size_t n);

/* What one of them watches. -ENOENT: it could not be had. */
int looking_at_epoll(const struct looking *l, int epoll, struct descriptor_set *out);

/* Somebody accepts connections there. */
void looking_listens(struct looking *l, const struct descriptor *d);

/* An address in the target's memory, in words; NULL: it is none. */
const char *looking_at_address(struct looking *l, const void *address, size_t len);

/* When all threads have been looked at: what all the sockets in snap->waits are. 0 or -ENOMEM. */
int looking_find_sockets(struct looking *l);

#endif
