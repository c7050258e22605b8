/* SPDX-License-Identifier: MIT */
#include "privilege/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Room for one descriptor beside a message. */
union fd_room {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

bool message_send(int socket, const void *message, size_t len, int fd)
{
	struct iovec iov = {.iov_base = (void *)message, .iov_len = len};
	union fd_room room = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent;

	if (fd >= 0) {
		struct cmsghdr *header;

		msg.msg_control = room.bytes;
		msg.msg_controllen = sizeof(room.bytes);
		header = CMSG_FIRSTHDR(&msg);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(int));
	}
	do
		sent = sendmsg(socket, &msg, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)len;
}

size_t message_receive(int socket, void *message, size_t room, int *fd)
{
	struct iovec iov = {.iov_base = message, .iov_len = room};
	union fd_room fds = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = fds.bytes, .msg_controllen = sizeof(fds.bytes)};
	struct cmsghdr *header;
	ssize_t got;

	*fd = -1;
	do
		got = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return 0;
	header = CMSG_FIRSTHDR(&msg);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(int));
	return (size_t)got;
}
