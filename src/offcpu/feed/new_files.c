/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/new_files.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "target/mapped_file.h"
#include "target/target.h"

enum {
	MAX_WAITING = 512, /* each is a descriptor */
	MAX_SEEN = 1 << 14,
};

struct new_files {
	struct roots *roots;
	pthread_mutex_t lock; /* guards what follows */
	struct u64map seen;   /* whatever was added */
	VEC(struct new_file) waiting;
	size_t opening; /* what is going to be added to these */
};

void new_files_drop(struct new_files *files, struct new_file *file)
{
	roots_give(files->roots, file->root);
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	*file = (struct new_file){.fd = -1};
}

struct new_files *new_files_create(struct roots *roots)
{
	struct new_files *files = calloc(1, sizeof(*files));

	if (!files)
		return NULL;
	files->roots = roots;
	pthread_mutex_init(&files->lock, NULL);
	return files;
}

void new_files_destroy(struct new_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->waiting.len; i++)
		new_files_drop(files, &files->waiting.data[i]);
	vec_deinit(&files->waiting);
	u64map_deinit(&files->seen);
	pthread_mutex_destroy(&files->lock);
	free(files);
}

static struct new_file *find_waiting(struct new_files *files, uint64_t key)
{
	for (size_t i = 0; i < files->waiting.len; i++)
		if (files->waiting.data[i].key == key)
			return &files->waiting.data[i];
	return NULL;
}

/* A file that turned out to have no tables is not opened again for each process that has it. */
static bool is_new(struct new_files *files, uint64_t key)
{
	bool created = false;

	return files->seen.len < MAX_SEEN && u64map_put(&files->seen, key, &created) && created;
}

/* Reserves room for it. False: it is, or was, here already, or there is none. */
static bool begin(struct new_files *files, uint64_t key)
{
	struct new_file *waiting;
	size_t n;
	bool ok;

	pthread_mutex_lock(&files->lock);
	n = files->waiting.len + files->opening;
	waiting = find_waiting(files, key);
	if (waiting)
		waiting->users++;
	ok = !waiting && n < MAX_WAITING && vec_reserve(&files->waiting, n + 1) && is_new(files, key);
	files->opening += ok;
	pthread_mutex_unlock(&files->lock);
	return ok;
}

static void finish(struct new_files *files, const struct new_file *file)
{
	pthread_mutex_lock(&files->lock);
	files->opening--;
	if (file->fd >= 0)
		vec_push(&files->waiting, *file);
	pthread_mutex_unlock(&files->lock);
}

void new_files_add(struct new_files *files, const struct target *target, const struct map_entry *entry, uint64_t identity)
{
	const uint64_t parts[] = {identity, entry->offset};
	struct new_file file = {
		.fd = -1,
		.offset = entry->offset,
		.key = hash_bytes(HASH_SEED, parts, sizeof(parts)) | 1,
		.users = 1,
	};

	if (!begin(files, file.key))
		return;
	file.path = strdup(entry->path);
	file.root = roots_take(files->roots, target->root_fd);
	if (file.path)
		file.fd = mapped_file_open(target, entry, false, NULL, &file.st);
	finish(files, &file);
	if (file.fd < 0)
		new_files_drop(files, &file);
}

static uint64_t bytes_each(const struct new_file *file)
{
	return (uint64_t)file->st.st_size / file->users;
}

bool new_files_take(struct new_files *files, struct new_file *out)
{
	size_t best = 0, n;

	pthread_mutex_lock(&files->lock);
	n = files->waiting.len;
	for (size_t i = 1; i < n; i++)
		if (bytes_each(&files->waiting.data[i]) < bytes_each(&files->waiting.data[best]))
			best = i;
	if (n) {
		*out = files->waiting.data[best];
		files->waiting.data[best] = files->waiting.data[n - 1];
		files->waiting.len--;
	}
	pthread_mutex_unlock(&files->lock);
	return n;
}
