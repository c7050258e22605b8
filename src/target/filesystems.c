/* SPDX-License-Identifier: MIT */
#include "target/filesystems.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/vec.h"
#include "proc/mounts.h"
#include "target/helper.h"
#include "target/patience.h"

/* A mount of one: it may have several. */
struct filesystem {
	struct mount_entry mount; /* with strings of our own */
	uint64_t ns;              /* the mount namespace that it was seen in */
	bool local;
	bool memory; /* it has no disk either */
	bool dead;   /* did not answer */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static VEC(struct filesystem) known;
static struct u64map namespaces; /* mount namespaces that were looked at, by inode */
static int own_mounts = -1;      /* /proc/self/mountinfo: poll() tells when it changes */
static uint64_t own_namespace;
static bool own_root; /* our root is among our mounts: it is not in a chroot to what is no mount point */

static struct filesystem *find(uint32_t dev_major, uint32_t dev_minor)
{
	for (size_t i = 0; i < known.len; i++)
		if (known.data[i].mount.dev_major == dev_major && known.data[i].mount.dev_minor == dev_minor)
			return &known.data[i];
	return NULL;
}

static struct filesystem *find_mount(uint64_t id)
{
	for (size_t i = 0; i < known.len; i++)
		if (known.data[i].mount.id == id)
			return &known.data[i];
	return NULL;
}

static void free_strings(struct filesystem *fs)
{
	free((char *)fs->mount.where);
	free((char *)fs->mount.type);
	free((char *)fs->mount.options);
}

/* The one that is mounted nearest to a path; with `remote`, of those that may not answer. */
static struct filesystem *find_path(const char *path, bool remote)
{
	struct filesystem *best = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < known.len; i++) {
		const char *where = known.data[i].mount.where;
		size_t len = strlen(where);

		if ((remote && known.data[i].local) || len < longest || strncmp(path, where, len) != 0 ||
		    (len > 1 && path[len] != '/' && path[len] != '\0'))
			continue;
		best = &known.data[i];
		longest = len;
	}
	return best;
}

/* A list of directories, separated by colons, after `key` in the options: whether all of them are local. */
static bool are_layers_local(const char *options, const char *key)
{
	const char *list = strstr(options, key);
	size_t left = list ? strcspn(list, ",") : 0;

	for (list = list ? list + strlen(key) : NULL, left -= list ? strlen(key) : 0; list && left;) {
		size_t len = strcspn(list, ":,");
		_cleanup_free_ char *path = strndup(list, len);
		const struct filesystem *below = path && path[0] == '/' ? find_path(path, false) : NULL;

		if (!below || !below->local)
			return false;
		left -= len < left ? len + (list[len] == ':') : left;
		list += len + (list[len] == ':');
	}
	return true;
}

/* overlayfs is what is below it; its layers are named as whoever mounted it saw them. */
static bool is_local(const struct mount_entry *mount)
{
	if (strcmp(mount->type, "overlay") != 0)
		return mount_type_is_local(mount->type);
	return are_layers_local(mount->options, "lowerdir=") && are_layers_local(mount->options, "upperdir=");
}

static bool is_memory(const char *type)
{
	return strcmp(type, "tmpfs") == 0 || strcmp(type, "devtmpfs") == 0 || strcmp(type, "hugetlbfs") == 0 ||
	       strcmp(type, "ramfs") == 0 || strcmp(type, "rootfs") == 0;
}

/* A mount that is listed again, in another namespace or later, is the same one, or its number was given to another. */
static void add(void *arg, const struct mount_entry *mount)
{
	struct filesystem *old = find_mount(mount->id);
	struct filesystem fs = {
		.mount = *mount,
		.ns = *(const uint64_t *)arg,
		.local = is_local(mount),
		.memory = is_memory(mount->type),
	};

	fs.mount.where = strdup(mount->where);
	fs.mount.type = strdup(mount->type);
	fs.mount.options = strdup(mount->options);
	if (!fs.mount.where || !fs.mount.type || !fs.mount.options) {
		free_strings(&fs);
	} else if (old) {
		fs.dead = old->dead && old->mount.dev_minor == mount->dev_minor;
		free_strings(old);
		*old = fs;
	} else if (!vec_push(&known, fs)) {
		free_strings(&fs);
	}
}

/* What was seen of a namespace before; those that did not answer are kept in mind. */
static void forget_namespace(uint64_t ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < known.len; i++) {
		if (known.data[i].ns == ns && !known.data[i].dead)
			free_strings(&known.data[i]);
		else
			known.data[kept++] = known.data[i];
	}
	known.len = kept;
}

/* Memory that is shared, a memfd or a System V segment, is a file of a file system that is mounted nowhere. */
static void add_shared_memory(void)
{
	_cleanup_close_ int fd = memfd_create("stakeout", MFD_CLOEXEC);
	struct mount_entry mount = {.id = UINT64_MAX, .where = "(shared memory)", .type = "tmpfs", .options = ""};
	uint64_t nowhere = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	mount.dev_major = major(st.st_dev);
	mount.dev_minor = minor(st.st_dev);
	add(&nowhere, &mount);
}

static uint64_t namespace_of(int dir_fd)
{
	struct stat st;

	return fstatat(dir_fd, "ns/mnt", &st, 0) == 0 ? st.st_ino : 0;
}

static void add_own(void *arg, const struct mount_entry *mount)
{
	own_root |= strcmp(mount->where, "/") == 0;
	add(arg, mount);
}

/* What another process sees that we do not: its paths are not ours. */
static void add_hidden(void *arg, const struct mount_entry *mount)
{
	if (!find_mount(mount->id))
		add(arg, mount);
}

static const char *type_of(int64_t magic)
{
	static const struct {
		int64_t magic;
		const char *type;
	} types[] = {
		{EXT4_SUPER_MAGIC, "ext4"},   {XFS_SUPER_MAGIC, "xfs"},	{BTRFS_SUPER_MAGIC, "btrfs"},
		{F2FS_SUPER_MAGIC, "f2fs"},   {0x2fc12fc1, "zfs"},	{0xca451a4e, "bcachefs"},
		{TMPFS_MAGIC, "tmpfs"},	      {RAMFS_MAGIC, "ramfs"},	{SQUASHFS_MAGIC, "squashfs"},
		{EROFS_SUPER_MAGIC_V1, "erofs"}, {ISOFS_SUPER_MAGIC, "iso9660"},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].magic == magic)
			return types[i].type;
	return NULL;
}

static void ask_for_root(void *arg, uint8_t *window, struct helper_reply *reply)
{
	struct statfs fs = {0};

	if (statfs("/", &fs) == 0) /* a server would be asked for that */
		reply->len = (uint64_t)fs.f_type;
}

/* Nobody lists the mount that our root is on; what is there can be told without asking it for a file. */
static void add_root(void)
{
	const struct helper_task task = {.run = ask_for_root, .keep = {-1, -1, -1, -1}};
	struct mount_entry mount = {.where = "/", .options = ""};
	struct helper_reply reply;
	uint8_t *none = NULL;
	struct statx stx;

	if (statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_MNT_ID, &stx) < 0 ||
	    !(stx.stx_mask & STATX_MNT_ID) || find_mount(stx.stx_mnt_id) || helper_run(&task, &reply, &none) < 0)
		return;
	mount.type = type_of((int64_t)reply.len);
	mount.id = stx.stx_mnt_id;
	mount.dev_major = stx.stx_dev_major;
	mount.dev_minor = stx.stx_dev_minor;
	if (mount.type)
		add(&own_namespace, &mount);
}

/* In a chroot no mount above it is listed, not even the one that it is on. Whoever is first in /proc is in none, as a rule. */
static void learn_above_root(void)
{
	_cleanup_close_ int first = open("/proc/1", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (first >= 0)
		mounts_visit(first, add_hidden, &own_namespace);
	add_root();
}

/* Our own, at first and whenever they have changed. */
static void learn_own(void)
{
	struct pollfd changes = {.fd = own_mounts, .events = POLLPRI};
	_cleanup_close_ int self = -1;

	if (own_mounts >= 0 && poll(&changes, 1, 0) <= 0)
		return;
	self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (own_mounts < 0) {
		own_mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
		own_namespace = namespace_of(self);
		add_shared_memory();
	}
	forget_namespace(own_namespace);
	own_root = false;
	if (mounts_visit(self, add_own, &own_namespace) == 0 && !own_root)
		learn_above_root();
}

void filesystems_learn(int dir_fd)
{
	uint64_t ns = namespace_of(dir_fd), nowhere = 0;
	bool created;

	pthread_mutex_lock(&lock);
	learn_own();
	if (ns && ns != own_namespace && u64map_put(&namespaces, ns, &created) && created)
		mounts_visit(dir_fd, add, &ns);
	if (ns && ns == own_namespace && !own_root)
		mounts_visit(dir_fd, add_hidden, &nowhere);
	pthread_mutex_unlock(&lock);
}

/* Numbers are used again: it is local only if all mounts with it are. */
bool filesystems_is_local(uint32_t dev_major, uint32_t dev_minor)
{
	bool any = false, local = true;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < known.len; i++)
		if (known.data[i].mount.dev_major == dev_major && known.data[i].mount.dev_minor == dev_minor) {
			any = true;
			local &= known.data[i].local;
		}
	pthread_mutex_unlock(&lock);
	return any && local;
}

bool filesystems_is_memory(uint32_t dev_major, uint32_t dev_minor)
{
	const struct filesystem *fs;
	bool memory;

	pthread_mutex_lock(&lock);
	fs = find(dev_major, dev_minor);
	memory = fs && fs->memory;
	pthread_mutex_unlock(&lock);
	return memory;
}

bool filesystems_is_local_mount(uint64_t id)
{
	const struct filesystem *fs;
	bool local;

	pthread_mutex_lock(&lock);
	learn_own();
	fs = find_mount(id);
	local = fs && fs->local;
	pthread_mutex_unlock(&lock);
	return local;
}

bool filesystems_any_remote(void)
{
	bool any = false;

	pthread_mutex_lock(&lock);
	learn_own();
	for (size_t i = 0; !any && i < known.len; i++)
		any = !known.data[i].local;
	pthread_mutex_unlock(&lock);
	return any;
}

static void give_up(struct filesystem *fs, const char *what)
{
	for (size_t i = 0; fs && i < known.len; i++)
		if (known.data[i].mount.dev_major == fs->mount.dev_major &&
		    known.data[i].mount.dev_minor == fs->mount.dev_minor)
			known.data[i].dead = true;
	if (fs && !fs->local)
		patience_complain("%s: the file system at %s (%s) did not answer in time; what is there is left out "
				  "(--patience gives it longer)",
				  what, fs->mount.where, fs->mount.type);
	else
		patience_complain("%s did not answer in time; what is there is left out (--patience gives it longer)", what);
}

void filesystems_give_up(uint32_t dev_major, uint32_t dev_minor, const char *what)
{
	pthread_mutex_lock(&lock);
	give_up(find(dev_major, dev_minor), what);
	pthread_mutex_unlock(&lock);
}

void filesystems_give_up_path(const char *path)
{
	pthread_mutex_lock(&lock);
	give_up(find_path(path, true), path);
	pthread_mutex_unlock(&lock);
}

bool filesystems_is_dead(uint32_t dev_major, uint32_t dev_minor)
{
	const struct filesystem *fs;
	bool dead;

	pthread_mutex_lock(&lock);
	fs = find(dev_major, dev_minor);
	dead = fs && fs->dead;
	pthread_mutex_unlock(&lock);
	return dead;
}

bool filesystems_is_dead_path(const char *path)
{
	const struct filesystem *fs;
	bool dead;

	pthread_mutex_lock(&lock);
	fs = find_path(path, true);
	dead = fs && fs->dead;
	pthread_mutex_unlock(&lock);
	return dead;
}

void filesystems_forget(void)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < known.len; i++)
		free_strings(&known.data[i]);
	vec_deinit(&known);
	u64map_deinit(&namespaces);
	if (own_mounts >= 0)
		close(own_mounts);
	own_mounts = -1;
	own_namespace = 0;
	pthread_mutex_unlock(&lock);
}
