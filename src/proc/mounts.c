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
