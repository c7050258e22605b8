/* SPDX-License-Identifier: MIT */
#include "target/roots.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/vec.h"

enum { MAX_ROOTS = 512 }; /* each is a descriptor */

/* The same directory may have other mounts below it in another mount namespace. */
struct identity {
	uint64_t device;
	uint64_t inode;
	uint64_t mount; /* 0 where the kernel does not tell */
};

struct root {
	struct identity identity;
	int fd;
	unsigned users;
};

struct roots {
	struct identity own;
	pthread_mutex_t lock; /* guards what follows */
	VEC(struct root *) all;
};

static bool identify(int fd, const char *path, struct identity *out)
{
	struct statx stx;

	if (statx(fd, path, AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &stx) < 0)
		return false;
	*out = (struct identity){
		.device = makedev(stx.stx_dev_major, stx.stx_dev_minor),
		.inode = stx.stx_ino,
		.mount = stx.stx_mask & STATX_MNT_ID ? stx.stx_mnt_id : 0,
	};
	return true;
}

static bool same(const struct identity *a, const struct identity *b)
{
	return a->device == b->device && a->inode == b->inode && a->mount == b->mount;
}

struct roots *roots_create(void)
{
	struct roots *roots = calloc(1, sizeof(*roots));

	if (!roots)
		return NULL;
	pthread_mutex_init(&roots->lock, NULL);
	identify(AT_FDCWD, "/", &roots->own);
	return roots;
}

void roots_destroy(struct roots *roots)
{
	if (!roots)
		return;
	vec_deinit(&roots->all);
	pthread_mutex_destroy(&roots->lock);
	free(roots);
}

static struct root *find(const struct roots *roots, const struct identity *identity)
{
	for (size_t i = 0; i < roots->all.len; i++)
		if (same(&roots->all.data[i]->identity, identity))
			return roots->all.data[i];
	return NULL;
}

static struct root *add(struct roots *roots, int fd, const struct identity *identity)
{
	struct root *root;

	if (roots->all.len >= MAX_ROOTS || !vec_reserve(&roots->all, roots->all.len + 1))
		return NULL;
	root = calloc(1, sizeof(*root));
	if (!root)
		return NULL;
	root->identity = *identity;
	root->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (root->fd < 0) {
		free(root);
		return NULL;
	}
	vec_push(&roots->all, root);
	return root;
}

struct root *roots_take(struct roots *roots, int root_fd)
{
	struct identity identity;
	struct root *root;

	if (root_fd < 0 || !identify(root_fd, "", &identity) || same(&identity, &roots->own))
		return NULL;
	pthread_mutex_lock(&roots->lock);
	root = find(roots, &identity);
	if (!root)
		root = add(roots, root_fd, &identity);
	if (root)
		root->users++;
	pthread_mutex_unlock(&roots->lock);
	return root;
}

static void drop(struct roots *roots, struct root *root)
{
	size_t i = 0;

	while (roots->all.data[i] != root)
		i++;
	roots->all.data[i] = roots->all.data[--roots->all.len];
	close(root->fd);
	free(root);
}

void roots_give(struct roots *roots, struct root *root)
{
	if (!root)
		return;
	pthread_mutex_lock(&roots->lock);
	if (!--root->users)
		drop(roots, root);
	pthread_mutex_unlock(&roots->lock);
}

int root_fd(const struct root *root)
{
	return root ? root->fd : -1;
}

bool roots_have(struct roots *roots, int fd)
{
	bool found = false;

	pthread_mutex_lock(&roots->lock);
	for (size_t i = 0; i < roots->all.len; i++)
		found |= roots->all.data[i]->fd == fd;
	pthread_mutex_unlock(&roots->lock);
	return found;
}
