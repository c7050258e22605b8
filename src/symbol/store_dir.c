/* SPDX-License-Identifier: MIT */
#include "symbol/store_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "privilege/caller.h"
#include "target/rootfile.h"
#include "symbol/store.h"

/* A directory above ours may also belong to root, like /tmp. */
static bool ours_or_roots(const struct stat *st)
{
	return st->st_uid == geteuid() || st->st_uid == 0;
}

static int refuse_owner(struct err *err, const char *path, const struct stat *st)
{
	return err_set(err, EPERM, "%s belongs to another user (uid %u; this runs as uid %u)", path,
		       (unsigned)st->st_uid, (unsigned)geteuid());
}

/* Under sudo it is the caller's, whatever $HOME is, and opened as the caller; su may leave $HOME as it was. */
int store_default_path(struct err *err, char **out)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	_cleanup_(caller_end) struct caller_scope as_caller = caller_begin_identity();
	const struct caller caller = caller_find();
	_cleanup_free_ char *callers_home = caller.by_sudo ? caller_home(&caller) : NULL;
	bool by_cache = cache && cache[0] == '/';
	const char *base = by_cache ? cache : callers_home ? callers_home : home;
	struct stat st;

	*out = NULL;
	if (!base || base[0] != '/')
		return err_set(err, ENOENT, "neither XDG_CACHE_HOME nor HOME is set to an absolute path");
	if (rootfile_probe(base) == -ETIMEDOUT) /* a home on a dead network mount */
		return err_set(err, ETIMEDOUT, "%s: its file system did not answer in time", base);
	if (stat(base, &st) == 0 && !ours_or_roots(&st))
		return refuse_owner(err, base, &st);
	if (asprintf(out, "%s%s/stakeout", base, by_cache ? "" : "/.cache") < 0) {
		*out = NULL;
		return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

/* Checks the directories above and, with `create`, creates missing ones where that is ours to do. */
static int check_parents(const char *path, bool create, struct err *err)
{
	_cleanup_free_ char *part = strdup(path);
	struct stat st;

	if (!part)
		return err_set(err, ENOMEM, "out of memory");
	if (stat("/", &st) < 0)
		return err_set(err, errno, "/: %s", strerror(errno));
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct stat above = st;

		*slash = '\0';
		if (stat(part, &st) < 0) {
			if (errno != ENOENT || !create)
				return err_set(err, errno, "%s: %s", part, strerror(errno));
			if (!ours_or_roots(&above))
				return refuse_owner(err, dirname(part), &above);
			if ((mkdir(part, 0700) < 0 && errno != EEXIST) || stat(part, &st) < 0)
				return err_set(err, errno, "%s cannot be created: %s", part, strerror(errno));
		}
		if (!strchr(slash + 1, '/') && !ours_or_roots(&st))
			return refuse_owner(err, part, &st);
		*slash = '/';
	}
	return 0;
}

/* A link is followed if it is our own: the user may want the cache on another disk. */
static int open_dir(const char *path, bool create, bool *by_link, struct err *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	struct stat st;
	int fd;

	*by_link = false;
	if (create && mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_set(err, errno, "%s cannot be created: %s", path, strerror(errno));
	fd = open(path, flags | O_NOFOLLOW);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR) && lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
		if (st.st_uid != geteuid())
			return refuse_owner(err, path, &st);
		*by_link = true;
		fd = open(path, flags);
	}
	return fd < 0 ? err_set(err, errno, "%s: %s", path, strerror(errno)) : fd;
}

int store_dir_open(const char *path, bool create, struct err *err)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	bool by_link;
	int rc;

	if (path[0] != '/')
		return err_set(err, EINVAL, "%s is not an absolute path", path);
	if (rootfile_probe(path) == -ETIMEDOUT)
		return err_set(err, ETIMEDOUT, "%s: its file system did not answer in time", path);
	rc = check_parents(path, create, err);
	if (rc < 0)
		return rc;
	fd = open_dir(path, create, &by_link, err);
	if (fd < 0)
		return steal_fd(&fd);
	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (st.st_uid != geteuid())
		return refuse_owner(err, path, &st);
	if (st.st_mode & 022)
		return err_set(err, EPERM, "others may write to %s (mode %04o)", path, (unsigned)st.st_mode & 07777);
	/* Others need not know what was examined; but a directory that a link leads to was not made for us alone. */
	if ((st.st_mode & 077) && !by_link && fchmod(fd, 0700) < 0 && errno != EROFS)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	return steal_fd(&fd);
}
