/* SPDX-License-Identifier: MIT */
#include "privilege/file_rights.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "privilege/capabilities.h"

static const char attribute[] = "security.capability";

enum { BITS = 32 };

size_t needed_rights(int last_capability, struct needed_right out[static MAX_NEEDED_RIGHTS])
{
	static const struct needed_right all[] = {
		{CAP_SYS_PTRACE, "cap_sys_ptrace", "nothing of processes of other users, and of your own only what yama allows"},
		{CAP_DAC_READ_SEARCH, "cap_dac_read_search",
		 "no memory of threads that run, nor registers by /proc, of processes of other users"},
		{CAP_BPF, "cap_bpf", "no BPF: kernel stacks and waits over time are missing, more threads are stopped"},
		{CAP_PERFMON, "cap_perfmon", "no BPF: the same"},
		{CAP_CHECKPOINT_RESTORE, "cap_checkpoint_restore", "no names of code in files that were replaced or deleted"},
		{CAP_SYSLOG, "cap_syslog", "no names in kernel stacks where kernel.kptr_restrict hides addresses"},
		{CAP_SYS_NICE, "cap_sys_nice", "threads that run are stopped by ptrace, and on a busy machine for longer"},
	};
	/* Before Linux 5.8 there were no CAP_BPF and CAP_PERFMON. */
	static const struct needed_right old = {
		CAP_SYS_ADMIN, "cap_sys_admin",
		"no BPF: kernel stacks and waits over time are missing, more threads are stopped; no names of code in files that "
		"were replaced or deleted"};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].capability <= last_capability)
			out[n++] = all[i];
	if (last_capability < CAP_CHECKPOINT_RESTORE)
		out[n++] = old;
	return n;
}

const char *capability_name(int capability, char buf[static 16])
{
	static const char *const others[] = {[CAP_SYS_ADMIN] = "cap_sys_admin", [CAP_SYS_RESOURCE] = "cap_sys_resource"};
	struct needed_right rights[MAX_NEEDED_RIGHTS];
	size_t n = needed_rights(CAP_LAST_CAP, rights);

	for (size_t i = 0; i < n; i++)
		if (rights[i].capability == capability)
			return rights[i].name;
	if ((size_t)capability < sizeof(others) / sizeof(others[0]) && others[capability])
		return others[capability];
	snprintf(buf, 16, "%d", capability);
	return buf;
}

static bool setup_gives(uint64_t capabilities)
{
	struct needed_right rights[MAX_NEEDED_RIGHTS];
	size_t n = needed_rights(capabilities_last(), rights);

	for (size_t i = 0; i < n; i++)
		capabilities &= ~RIGHT(rights[i].capability);
	return !capabilities;
}

const char *rights_help(uint64_t capabilities, char buf[static RIGHTS_HELP])
{
	int len = snprintf(buf, RIGHTS_HELP, "sudo stakeout …%s (", setup_gives(capabilities) ? ", or once: sudo stakeout setup" : "");
	const char *comma = "";
	char number[16];

	for (int i = 0; i <= CAP_LAST_CAP && len < RIGHTS_HELP; i++)
		if (capabilities & RIGHT(i)) {
			len += snprintf(buf + len, (size_t)(RIGHTS_HELP - len), "%s%s", comma, capability_name(i, number));
			comma = ",";
		}
	if (len < RIGHTS_HELP)
		snprintf(buf + len, (size_t)(RIGHTS_HELP - len), ")");
	return buf;
}

int file_rights_open(const char *path, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		return err_set(err, ELOOP, "%s is a symbolic link: name the file itself", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return err_set(err, EINVAL, "%s is not a program", path);
	if (st.st_nlink > 1)
		return err_set(err, EPERM, "%s is one of %u names of a file (hard links): all of them would get the rights", path,
			       (unsigned)st.st_nlink);
	if (st.st_uid != 0 || st.st_mode & 022)
		return err_set(err, EPERM, "others than root can change %s (uid %u, mode %04o): install it first, as root", path,
			       (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
	return steal_fd(&fd);
}

uint64_t file_rights_read(int fd)
{
	struct vfs_ns_cap_data data = {0}; /* the longest form */
	ssize_t len = fgetxattr(fd, attribute, &data, sizeof(data));

	if (len < (ssize_t)sizeof(struct vfs_cap_data))
		return 0;
	return le32toh(data.data[0].permitted) | (uint64_t)le32toh(data.data[1].permitted) << BITS;
}

static int set_owner(int fd, gid_t group, mode_t mode, struct err *err)
{
	if (fchown(fd, 0, group) < 0)
		return err_set(err, errno, "changing its owner: %s", strerror(errno));
	if (fchmod(fd, mode) < 0)
		return err_set(err, errno, "changing its mode: %s", strerror(errno));
	return 0;
}

int file_rights_give(int fd, uint64_t capabilities, gid_t group, struct err *err)
{
	const struct vfs_cap_data data = {
		.magic_etc = htole32(VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE),
		.data = {{.permitted = htole32((uint32_t)capabilities)}, {.permitted = htole32((uint32_t)(capabilities >> BITS))}},
	};
	int rc = set_owner(fd, group, 0750, err); /* first: it also takes away what capabilities were there */

	if (rc == 0 && fsetxattr(fd, attribute, &data, sizeof(data), 0) < 0)
		rc = err_set(err, errno, "giving it capabilities: %s%s", strerror(errno),
			     errno == EOPNOTSUPP ? " (its file system keeps none)" : "");
	return rc;
}

int file_rights_take_back(int fd, struct err *err)
{
	if (fremovexattr(fd, attribute) < 0 && errno != ENODATA && errno != EOPNOTSUPP)
		return err_set(err, errno, "taking its capabilities away: %s", strerror(errno));
	return set_owner(fd, 0, 0755, err);
}
