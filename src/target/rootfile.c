/* SPDX-License-Identifier: MIT */
#include "target/rootfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/debug.h"
#include "privilege/broker.h"
#include "privilege/caller.h"
#include "target/file_errands.h"
#include "target/filesystems.h"
#include "target/helper.h"

static const uint64_t max_copy = UINT64_C(2) << 30; /* bytes of a file that a helper copies */

int rootfile_reopen(int path_fd, struct stat *st)
{
	struct stat own;
	char self[64];
	int fd;

	if (!st)
		st = &own;
	if (fstat(path_fd, st) < 0)
		return -errno;
	if (S_ISLNK(st->st_mode))
		return -ELOOP;
	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Without openat2 (before Linux 5.6) an absolute link would leave the root, so only the last name may not be one. */
static int open_path(int root_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags), .resolve = resolve};
	int fd;

	if (root_fd < 0 && !resolve) {
		fd = open(path, O_PATH | O_CLOEXEC | flags);
		return fd < 0 ? -errno : fd;
	}
	if (root_fd >= 0)
		how.resolve |= RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
	fd = (int)syscall(SYS_openat2, root_fd >= 0 ? root_fd : AT_FDCWD, path, &how, sizeof(how));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM) && !resolve)
		fd = openat(root_fd, path + strspn(path, "/"), O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_directly(int root_fd, const char *path, int flags, struct stat *st)
{
	_cleanup_close_ int path_fd = open_path(root_fd, path, flags, 0);

	return path_fd < 0 ? path_fd : rootfile_reopen(path_fd, st);
}

int rootfile_open_directly(int root_fd, const char *path, struct stat *st)
{
	return open_directly(root_fd, path, 0, st);
}

bool rootfile_is_local(int path_fd)
{
	struct statx stx;

	if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_MNT_ID, &stx) < 0)
		return false;
	if (stx.stx_mask & STATX_MNT_ID && filesystems_is_local_mount(stx.stx_mnt_id))
		return true;
	return filesystems_is_local(stx.stx_dev_major, stx.stx_dev_minor);
}

struct resolve_task {
	int root_fd;
	const char *path;
	int flags;
};

static void run_resolve(void *arg, uint8_t *window, struct helper_reply *reply)
{
	const struct resolve_task *task = arg;

	reply->fd = open_path(task->root_fd, task->path, task->flags, 0);
	reply->rc = reply->fd < 0 ? reply->fd : 0;
}

/* A descriptor (O_PATH) of what a path leads to, however far away that is; or -errno. */
static int resolve_by_helper(int root_fd, const char *path, int flags)
{
	struct resolve_task resolve = {.root_fd = root_fd, .path = path, .flags = flags};
	const struct helper_task task = {.run = run_resolve, .arg = &resolve, .keep = {root_fd, -1, -1, -1}};
	struct helper_reply reply;
	int rc = filesystems_is_dead_path(path) ? -ETIMEDOUT : helper_run(&task, &reply, NULL);

	if (rc == -ETIMEDOUT)
		filesystems_give_up_path(path);
	return rc < 0 ? rc : reply.fd;
}

/*
 * Follows a path without waiting for ever: a descriptor (O_PATH), or -errno. The kernel follows a path that it has seen
 * before without asking any file system (RESOLVE_CACHED, Linux 5.12). Where it would have to ask, a helper follows the path
 * if any file system that may not answer is mounted.
 */
static int resolve(int root_fd, const char *path, int flags)
{
	int path_fd = open_path(root_fd, path, flags, RESOLVE_CACHED);

	if (path_fd >= 0 || path_fd == -ENOENT || path_fd == -ENOTDIR || path_fd == -EACCES)
		return path_fd;
	return filesystems_any_remote() ? resolve_by_helper(root_fd, path, flags) : open_path(root_fd, path, flags, 0);
}

int rootfile_copy(int fd)
{
	_cleanup_close_ int from = fd, copy = -1;
	char buf[64 << 10];
	uint64_t total = 0;
	ssize_t got;

	if (fd < 0)
		return fd;
	copy = memfd_create("stakeout-copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (copy < 0)
		return -errno;
	while ((got = read(from, buf, sizeof(buf))) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		for (ssize_t done = 0, n; done < got; done += n) {
			n = write(copy, buf + done, (size_t)(got - done));
			if (n <= 0)
				return n < 0 ? -errno : -EIO;
		}
		total += (uint64_t)got;
		if (total > max_copy)
			return -EFBIG;
	}
	fcntl(copy, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	return lseek(copy, 0, SEEK_SET) < 0 ? -errno : steal_fd(&copy);
}

static void run_copy(void *arg, uint8_t *window, struct helper_reply *reply)
{
	reply->fd = rootfile_copy(rootfile_reopen(*(const int *)arg, &reply->st));
	reply->rc = reply->fd < 0 ? reply->fd : 0;
}

/* Of a file that may never answer. */
static int copy_by_helper(int path_fd, const char *path, struct stat *st)
{
	const struct helper_task task = {.run = run_copy, .arg = &path_fd, .keep = {path_fd, -1, -1, -1}};
	struct helper_reply reply;
	int rc = filesystems_is_dead_path(path) ? -ETIMEDOUT : helper_run(&task, &reply, NULL);

	if (rc == -ETIMEDOUT)
		filesystems_give_up_path(path);
	if (rc < 0)
		return rc;
	if (st)
		*st = reply.st;
	return reply.fd;
}

static int open_file(int root_fd, const char *path, int flags, struct stat *st)
{
	_cleanup_(caller_end) struct caller_scope lowered = {0};
	_cleanup_close_ int path_fd = -1;

	if (broker_is_there())
		return file_errand_open(root_fd, path, flags & O_NOFOLLOW, st);
	/* What is below our own root was named by the caller, or by what the caller let us read. */
	if (root_fd < 0)
		lowered = caller_begin_rights();
	path_fd = resolve(root_fd, path, flags);
	if (path_fd < 0)
		return path_fd;
	return rootfile_is_local(path_fd) ? rootfile_reopen(path_fd, st) : copy_by_helper(path_fd, path, st);
}

static int open_and_tell(int root_fd, const char *path, int flags, struct stat *st)
{
	int fd = open_file(root_fd, path, flags, st);

	if (!broker_is_there()) /* who says it, too */
		debug_say(fd, "opening %s%s", path, root_fd < 0 ? "" : " of the process's root");
	return fd;
}

int rootfile_open(int root_fd, const char *path, struct stat *st)
{
	return open_and_tell(root_fd, path, 0, st);
}

int rootfile_open_itself(int root_fd, const char *path, struct stat *st)
{
	return open_and_tell(root_fd, path, O_NOFOLLOW, st);
}

static void run_stat(void *arg, uint8_t *window, struct helper_reply *reply)
{
	reply->rc = fstat(*(const int *)arg, &reply->st) < 0 ? -errno : 0;
}

int rootfile_stat(int root_fd, const char *path, struct stat *st)
{
	_cleanup_close_ int path_fd = broker_is_there() ? -1 : resolve(root_fd, path, 0);
	const struct helper_task task = {.run = run_stat, .arg = &path_fd, .keep = {path_fd, -1, -1, -1}};
	struct helper_reply reply;
	int rc;

	if (broker_is_there())
		return file_errand_stat(root_fd, path, st);
	if (path_fd < 0)
		return path_fd;
	if (rootfile_is_local(path_fd))
		return fstat(path_fd, st) < 0 ? -errno : 0;
	rc = filesystems_is_dead_path(path) ? -ETIMEDOUT : helper_run(&task, &reply, NULL);
	if (rc == -ETIMEDOUT)
		filesystems_give_up_path(path);
	else
		*st = reply.st;
	return rc;
}

char *rootfile_real_path(const char *path)
{
	_cleanup_close_ int path_fd = -1;
	char self[64], buf[PATH_MAX];
	ssize_t len;

	if (broker_is_there())
		return file_errand_real_path(path);
	path_fd = resolve(-1, path, 0);
	if (path_fd < 0)
		return NULL;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	len = readlink(self, buf, sizeof(buf)); /* the kernel knows it: no file system is asked */
	return len < 0 ? NULL : strndup(buf, (size_t)len);
}

int rootfile_probe(const char *path)
{
	struct stat st;
	int rc = rootfile_stat(-1, path, &st);

	return rc == -ETIMEDOUT ? rc : 0;
}

int rootfile_to_image(int fd, const struct stat *st, struct err *err, struct image **out)
{
	int rc = image_open_fd(fd, err, out);

	if (rc == 0)
		image_set_identity(*out, st);
	return rc;
}

int rootfile_open_image(int root_fd, const char *path, struct err *err, struct image **out)
{
	struct stat st;
	int fd = rootfile_open(root_fd, path, &st);

	if (fd == -EINVAL)
		return err_set(err, ENOEXEC, "not a regular file");
	if (fd == -ENOEXEC) /* a broker has looked */
		return err_set(err, ENOEXEC, "not an ELF file");
	if (fd == -ETIMEDOUT)
		return err_set(err, ETIMEDOUT, "its file system did not answer in time (--patience)");
	if (fd < 0)
		return err_set(err, -fd, "cannot be opened: %s", strerror(-fd));
	return rootfile_to_image(fd, &st, err, out);
}
