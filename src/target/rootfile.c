/* SPDX-License-Identifier: MIT */
#include "target/rootfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

int rootfile_reopen(int path_fd)
{
	char self[64];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Without openat2 (before Linux 5.6) an absolute link would leave the root, so only the last name may not be one. */
static int open_in_root(int root_fd, const char *path, int flags)
{
	struct open_how how = {.flags = (__u64)(O_PATH | O_CLOEXEC | flags),
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(root_fd, path + strspn(path, "/"), O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_path(int root_fd, const char *path, int flags)
{
	int fd;

	if (root_fd >= 0)
		return open_in_root(root_fd, path, flags);
	fd = open(path, O_PATH | O_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}

int rootfile_open(int root_fd, const char *path)
{
	_cleanup_close_ int path_fd = open_path(root_fd, path, 0);

	return path_fd < 0 ? path_fd : rootfile_reopen(path_fd);
}

int rootfile_open_itself(int root_fd, const char *path)
{
	_cleanup_close_ int path_fd = open_path(root_fd, path, O_NOFOLLOW);
	struct stat st;

	if (path_fd < 0)
		return path_fd;
	if (fstat(path_fd, &st) == 0 && S_ISLNK(st.st_mode))
		return -ELOOP;
	return rootfile_reopen(path_fd);
}
