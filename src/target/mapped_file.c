/* SPDX-License-Identifier: MIT */
#include "target/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/debug.h"
#include "privilege/remedy.h"
#include "target/debugfile.h"
#include "target/filesystems.h"
#include "target/helper.h"
#include "target/rootfile.h"
#include "target/target.h"

enum { LINK_SIZE = 64 };

DEFINE_CLEANUP(image, struct image *, image_destroy)

/* The kernel's link to the file of a mapping, below /proc/PID. */
static void format_link(const struct map_entry *entry, char *link)
{
	snprintf(link, LINK_SIZE, "map_files/%llx-%llx", (unsigned long long)entry->start, (unsigned long long)entry->end);
}

uint64_t mapped_file_identity(const struct target *target, const struct map_entry *entry)
{
	_cleanup_close_ int fd = -1;
	struct stat st = {0};
	struct statx stx;
	char link[LINK_SIZE];

	format_link(entry, link);
	fd = openat(target->process.mm_fd, link, O_PATH | O_CLOEXEC);
	/* What is remembered of the file will do: it may be on a file system that never answers. */
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &stx) < 0)
		return 0;
	st.st_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	st.st_ino = stx.stx_ino;
	st.st_size = (off_t)stx.stx_size;
	st.st_mtim = (struct timespec){.tv_sec = stx.stx_mtime.tv_sec, .tv_nsec = stx.stx_mtime.tv_nsec};
	st.st_ctim = (struct timespec){.tv_sec = stx.stx_ctime.tv_sec, .tv_nsec = stx.stx_ctime.tv_nsec};
	return image_identity_of(&st);
}

enum identity {
	SAME_INODE, /* the device number may differ */
	SAME_INODE_AND_DEV,
	ANY_FILE,
};

/*
 * Is this the file that the target has mapped? btrfs and overlayfs give other device numbers in maps than in stat,
 * so below the target's own root, where the path is the one that was mapped, an equal inode is enough.
 */
static bool is_identical(const struct stat *st, const struct map_entry *entry, enum identity identity)
{
	if (identity == ANY_FILE)
		return true;
	if (st->st_ino != entry->inode)
		return false;
	return identity == SAME_INODE || (major(st->st_dev) == entry->dev_major && minor(st->st_dev) == entry->dev_minor);
}

/* Closes the file and gives -ESTALE when it is another one. */
static int check_identity(int fd, const struct stat *st, const struct map_entry *entry, enum identity identity)
{
	if (fd >= 0 && !is_identical(st, entry, identity)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* How files are opened: with a way around what never answers, or in a helper, which is that way. */
struct opener {
	const struct target *target;
	const struct map_entry *entry;
	bool ignore_deleted;
	bool in_helper;
	int (*open)(int root_fd, const char *path, struct stat *st);
};

/* One of the kernel's links below /proc/PID that lead to the file itself, wherever and whether it has a name. */
static int open_link(const struct opener *o, const char *link, struct stat *st)
{
	_cleanup_close_ int path_fd = openat(o->target->process.mm_fd, link, O_PATH | O_CLOEXEC);

	if (path_fd < 0)
		return -errno;
	if (!o->in_helper && !rootfile_is_local(path_fd)) /* another file than the mapped one, which is local */
		return -ESTALE;
	return check_identity(rootfile_reopen(path_fd, st), st, o->entry, SAME_INODE);
}

static int open_path(const struct opener *o, enum identity identity, struct stat *st)
{
	int root_fd = o->target->root_fd;
	int fd = root_fd >= 0 ? check_identity(o->open(root_fd, o->entry->path, st), st, o->entry, identity) : -ENOENT;
	int own;

	if (fd >= 0 || identity == ANY_FILE)
		return fd;
	/* /proc shows paths relative to the reader's root: for a target in a chroot that is ours. */
	own = check_identity(o->open(-1, o->entry->path, st), st, o->entry, SAME_INODE_AND_DEV);
	return own >= 0 ? own : fd;
}

/* From the surest way to the least: each finds the mapped file, or none. */
static int open_live(const struct opener *o, struct stat *st)
{
	char link[LINK_SIZE];
	int fd, code;

	format_link(o->entry, link);
	fd = open_link(o, link, st);
	if (fd >= 0)
		return fd;
	code = open_path(o, SAME_INODE, st);
	fd = code >= 0 ? code : open_link(o, "exe", st);
	if (fd < 0 && o->entry->deleted && o->ignore_deleted)
		fd = open_path(o, ANY_FILE, st);
	return fd >= 0 ? fd : code;
}

static void run_open(void *arg, uint8_t *window, struct helper_reply *reply)
{
	const struct opener *o = arg;

	reply->fd = rootfile_copy(open_live(o, &reply->st));
	reply->rc = reply->fd < 0 ? reply->fd : 0;
}

static int open_by_helper(struct opener *o, struct stat *st)
{
	const struct map_entry *entry = o->entry;
	const struct helper_task task = {
		.run = run_open,
		.arg = o,
		.keep = {o->target->process.mm_fd, o->target->root_fd, -1, -1},
	};
	struct helper_reply reply;
	int rc;

	if (filesystems_is_dead(entry->dev_major, entry->dev_minor))
		return -ETIMEDOUT;
	o->open = rootfile_open_directly;
	o->in_helper = true;
	rc = helper_run(&task, &reply, NULL);
	if (rc == -ETIMEDOUT)
		filesystems_give_up(entry->dev_major, entry->dev_minor, entry->path);
	*st = reply.st;
	return rc < 0 ? rc : reply.fd;
}

static int explain_open(const struct map_entry *entry, int code, struct err *err)
{
	char help[REMEDY_SIZE];

	if (entry->deleted && code != ETIMEDOUT)
		return err_set(err, code, "the file is deleted; what is left of it can be opened through "
			       "/proc/PID/map_files: %s; --ignore-deleted reads what is at its path now",
			       remedy(REFUSED_MAP_FILES, help));
	if (code == ESTALE)
		return err_set(err, code, "the file at this path is not the one that is mapped");
	if (code == EINVAL)
		return err_set(err, code, "not a regular file");
	if (code == ETIMEDOUT)
		return err_set(err, code, "its file system did not answer in time (--patience)");
	return err_set(err, code, "cannot be opened: %s", strerror(code));
}

int mapped_file_open(const struct target *target, const struct map_entry *entry, bool ignore_deleted, struct err *err,
		     struct stat *st)
{
	struct opener o = {.target = target, .entry = entry, .ignore_deleted = ignore_deleted, .open = rootfile_open};
	struct stat own;
	int fd;

	if (!target_is_live(target))
		return err_set(err, ESRCH, "there is no process behind the snapshot");
	fd = filesystems_is_local(entry->dev_major, entry->dev_minor) ? open_live(&o, st ? st : &own)
								       : open_by_helper(&o, st ? st : &own);
	debug_say(fd, "opening the mapped file %s", entry->path);
	return fd >= 0 ? fd : explain_open(entry, -fd, err);
}

/* A file of the machine that replays is the recorded one when its build-id says so, else when its inode does. */
static int open_recorded_path(const char *path, const struct map_entry *entry, struct err *err, struct image **out)
{
	_cleanup_(cleanup_image) struct image *image = NULL;
	struct stat st;
	int fd = check_identity(rootfile_open(-1, path, &st), &st, entry, entry->build_id ? ANY_FILE : SAME_INODE_AND_DEV);
	const char *found;
	int ret;

	if (fd == -ESTALE)
		return err_set(err, ESTALE, "the recorded file has no build-id, and the one at this path is another");
	if (fd < 0)
		return err_set(err, -fd, "cannot be opened: %s", strerror(-fd));
	ret = rootfile_to_image(fd, &st, err, &image);
	if (ret < 0)
		return ret;
	found = image_build_id(image);
	if (entry->build_id && (!found || strcmp(found, entry->build_id) != 0))
		return err_set(err, ESTALE, "the file's build-id differs: %s was recorded, here it is %s",
			       entry->build_id, found ? found : "missing");
	*out = steal_ptr(image);
	return 0;
}

int mapped_file_open_recorded(const struct map_entry *entry, struct err *err, struct image **out)
{
	int ret = open_recorded_path(entry->path, entry, err, out);
	char path[BUILD_ID_PATH];

	for (int place = BUILD_ID_PROGRAM; ret < 0 && entry->build_id && place <= BUILD_ID_PROGRAM_DEBUG; place++)
		if (build_id_path((enum build_id_place)place, entry->build_id, path) &&
		    open_recorded_path(path, entry, NULL, out) == 0)
			ret = 0;
	return ret;
}
