/* SPDX-License-Identifier: MIT */
#include "target/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
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
	char link[LINK_SIZE];

	format_link(entry, link);
	fd = openat(target->process.mm_fd, link, O_PATH | O_CLOEXEC);
	return fd < 0 ? 0 : image_identity_of(fd);
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
static bool is_identical(int fd, const struct map_entry *entry, enum identity identity)
{
	struct stat st;

	if (identity == ANY_FILE)
		return true;
	if (fstat(fd, &st) < 0 || st.st_ino != entry->inode)
		return false;
	return identity == SAME_INODE || (major(st.st_dev) == entry->dev_major && minor(st.st_dev) == entry->dev_minor);
}

/* Closes the file and gives -ESTALE when it is another one. */
static int check_identity(int fd, const struct map_entry *entry, enum identity identity)
{
	if (fd >= 0 && !is_identical(fd, entry, identity)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* One of the kernel's links below /proc/PID that lead to the file itself, wherever and whether it has a name. */
static int open_link(const struct target *target, const char *link, const struct map_entry *entry)
{
	_cleanup_close_ int path_fd = openat(target->process.mm_fd, link, O_PATH | O_CLOEXEC);

	if (path_fd < 0)
		return -errno;
	return check_identity(rootfile_reopen(path_fd), entry, SAME_INODE);
}

static int open_path(const struct target *target, const struct map_entry *entry)
{
	int fd = target->root_fd >= 0 ? check_identity(rootfile_open(target->root_fd, entry->path), entry, SAME_INODE) : -ENOENT;
	int own;

	if (fd >= 0)
		return fd;
	/* /proc shows paths relative to the reader's root: for a target in a chroot that is ours. */
	own = check_identity(rootfile_open(-1, entry->path), entry, SAME_INODE_AND_DEV);
	return own >= 0 ? own : fd;
}

static int explain_open(const struct map_entry *entry, int code, struct err *err)
{
	if (entry->deleted)
		return err_set(
			err, code,
			"the file is deleted; opening what is left of it through /proc/PID/map_files needs root, "
			"CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN; --ignore-deleted reads what is at its path now");
	if (code == ESTALE)
		return err_set(err, code, "the file at this path is not the one that is mapped");
	if (code == EINVAL)
		return err_set(err, code, "not a regular file");
	return err_set(err, code, "cannot be opened: %s", strerror(code));
}

/* From the surest way to the least: each finds the mapped file, or none. */
int mapped_file_open(const struct target *target, const struct map_entry *entry, bool ignore_deleted, struct err *err)
{
	char link[LINK_SIZE];
	int fd, code;

	if (!target_is_live(target))
		return err_set(err, ESRCH, "there is no process behind the snapshot");
	format_link(entry, link);
	fd = open_link(target, link, entry);
	if (fd >= 0)
		return fd;
	fd = open_path(target, entry);
	code = -fd;
	if (fd < 0)
		fd = open_link(target, "exe", entry);
	if (fd < 0 && entry->deleted && ignore_deleted)
		fd = check_identity(rootfile_open(target->root_fd, entry->path), entry, ANY_FILE);
	return fd >= 0 ? fd : explain_open(entry, code, err);
}

/* A file of the machine that replays is the recorded one when its build-id says so, else when its inode does. */
static int open_recorded_path(const char *path, const struct map_entry *entry, struct err *err, struct image **out)
{
	_cleanup_(cleanup_image) struct image *image = NULL;
	int fd = check_identity(rootfile_open(-1, path), entry, entry->build_id ? ANY_FILE : SAME_INODE_AND_DEV);
	const char *found;
	int ret;

	if (fd == -ESTALE)
		return err_set(err, ESTALE, "the recorded file has no build-id, and the one at this path is another");
	if (fd < 0)
		return err_set(err, -fd, "cannot be opened: %s", strerror(-fd));
	ret = image_open_fd(fd, err, &image);
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
	static const char *const places[] = {"/usr/lib/.build-id/%.2s/%s", "/usr/lib/debug/.build-id/%.2s/%s"};
	const char *id = entry->build_id;
	int ret = open_recorded_path(entry->path, entry, err, out);
	char path[256];

	for (size_t i = 0; ret < 0 && id && strlen(id) > 2 && i < sizeof(places) / sizeof(places[0]); i++) {
		int len = snprintf(path, sizeof(path), places[i], id, id + 2);

		/* A saved build-id is foreign text: only what can be one becomes a path. */
		if (strspn(id, "0123456789abcdef") != strlen(id) || len < 0 || (size_t)len >= sizeof(path))
			break;
		if (open_recorded_path(path, entry, NULL, out) == 0)
			ret = 0;
	}
	return ret;
}

