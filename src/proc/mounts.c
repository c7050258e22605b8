/* SPDX-License-Identifier: MIT */
#include "proc/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* File systems that are not listed may have a server behind them: FUSE, NFS, CIFS, 9p, Ceph, autofs… */
static const char *const local_types[] = {
	"ext2",     "ext3",	"ext4",	    "xfs",	 "btrfs",	"f2fs",	     "bcachefs",  "zfs",       "jfs",
	"reiserfs", "nilfs2",	"ubifs",    "jffs2",	 "minix",	"vfat",	     "msdos",	  "exfat",     "ntfs3",
	"hfs",	    "hfsplus",	"iso9660",  "udf",	 "squashfs",	"erofs",     "romfs",	  "cramfs",    "tmpfs",
	"ramfs",    "rootfs",	"devtmpfs", "hugetlbfs", "proc",	  "sysfs",     "devpts",
	"cgroup",   "cgroup2",	"mqueue",   "debugfs",	 "tracefs",	"securityfs", "configfs", "pstore",    "bpf",
	"efivarfs", "fusectl",	"nsfs",	    "selinuxfs", "binfmt_misc",
};

bool mount_type_is_local(const char *type)
{
	for (size_t i = 0; i < sizeof(local_types) / sizeof(local_types[0]); i++)
		if (strcmp(type, local_types[i]) == 0)
			return true;
	return false;
}

/* Spaces, tabs, newlines and backslashes of a path are written in octal: \\040. */
static void unescape(char *text)
{
	char *out = text;

	while (*text) {
		if (text[0] == '\\' && strspn(text + 1, "01234567") >= 3) {
			char digits[4] = {text[1], text[2], text[3]};

			*out++ = (char)strtoul(digits, NULL, 8);
			text += 4;
			continue;
		}
		*out++ = *text++;
	}
	*out = '\0';
}

/*
 * "36 35 98:0 /root /where rw,noatime master:1 - type source options", with any number of optional fields before the
 * dash.
 */
static bool parse_line(char *line, struct mount_entry *out)
{
	char *save = NULL, *word = strtok_r(line, " \n", &save);
	char *where = NULL;

	for (int i = 0; word && strcmp(word, "-") != 0; i++, word = strtok_r(NULL, " \n", &save)) {
		if (i == 0)
			out->id = strtoull(word, NULL, 10);
		if (i == 2 && sscanf(word, "%u:%u", &out->dev_major, &out->dev_minor) != 2)
			return false;
		if (i == 4)
			where = word;
	}
	out->type = word ? strtok_r(NULL, " \n", &save) : NULL;
	if (!where || !out->type)
		return false;
	unescape(where);
	out->where = where;
	word = strtok_r(NULL, " \n", &save);
	if (word)
		unescape(word);
	out->source = word ? word : "";
	word = strtok_r(NULL, " \n", &save);
	out->options = word ? word : "";
	return true;
}

int mounts_visit(int dir_fd, void (*visit)(void *arg, const struct mount_entry *mount), void *arg)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	int fd = openat(dir_fd, "mountinfo", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	while (getline(&line, &size, f) > 0) {
		struct mount_entry mount = {0};

		if (parse_line(line, &mount))
			visit(arg, &mount);
	}
	return ferror(f) ? -EIO : 0;
}

void mount_list_deinit(struct mount_list *mounts)
{
	arena_destroy(mounts->strings);
	vec_deinit(mounts);
	mounts->strings = NULL;
}

/* Where memory is exhausted some are missing. */
static void add(void *arg, const struct mount_entry *mount)
{
	struct mount_list *mounts = arg;
	const struct mount_entry copy = {
		.id = mount->id,
		.dev_major = mount->dev_major,
		.dev_minor = mount->dev_minor,
		.where = arena_intern(mounts->strings, mount->where),
		.type = arena_intern(mounts->strings, mount->type),
		.source = arena_intern(mounts->strings, mount->source),
		.options = "",
	};

	if (copy.where && copy.type && copy.source)
		(void)vec_push(mounts, copy);
}

/* Those of a thread that lives: a main thread that has ended sees none. */
static void read_once(struct mount_list *mounts)
{
	if (mounts->strings)
		return;
	mounts->strings = arena_create();
	if (mounts->strings)
		mounts_visit(mounts->process->mm_fd, add, mounts);
}

const struct mount_entry *mount_list_find(struct mount_list *mounts, uint64_t id)
{
	read_once(mounts);
	for (size_t i = 0; i < mounts->len; i++)
		if (mounts->data[i].id == id)
			return &mounts->data[i];
	return NULL;
}

const struct mount_entry *mount_list_find_device(struct mount_list *mounts, uint32_t dev_major, uint32_t dev_minor)
{
	read_once(mounts);
	for (size_t i = mounts->len; i > 0; i--)
		if (mounts->data[i - 1].dev_major == dev_major && mounts->data[i - 1].dev_minor == dev_minor)
			return &mounts->data[i - 1];
	return NULL;
}

const struct mount_entry *mount_list_find_path(struct mount_list *mounts, const char *path)
{
	const struct mount_entry *nearest = NULL;
	size_t longest = 0;

	read_once(mounts);
	for (size_t i = 0; i < mounts->len; i++) {
		const char *where = mounts->data[i].where;
		const size_t len = strcmp(where, "/") == 0 ? 0 : strlen(where);

		if (len < longest || strncmp(path, where, len) != 0 || (path[len] && path[len] != '/'))
			continue;
		nearest = &mounts->data[i];
		longest = len;
	}
	return nearest;
}
