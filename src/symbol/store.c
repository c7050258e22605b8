/* SPDX-License-Identifier: MIT */
#include "symbol/store.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/debug.h"
#include "privilege/caller.h"
#include "symbol/store_dir.h"

struct store {
	int dir_fd;
	uint64_t limit;
	char *path;
};

/*
 * The header before the payload, as this machine writes it: a home directory shared between machines may hold files of
 * other kinds of machine, with another byte order or word size.
 */
struct envelope {
	char magic[8];
	uint32_t byte_order;
	uint32_t word_size;
	uint32_t version; /* of the payload's format */
	uint32_t key_len;
	uint64_t payload_len;
	char key[STORE_KEY_MAX];
	char unused[28];
	uint32_t checksum; /* of everything before it */
};

static_assert(sizeof(struct envelope) == STORE_ENVELOPE && STORE_ENVELOPE % STORE_ALIGN == 0, "on-disk layout");
static_assert(offsetof(struct envelope, checksum) == STORE_ENVELOPE - 4, "on-disk layout");

static const char magic[8] = {'S', 'T', 'K', 'O', 'S', 'T', 'O', 'R'};
static const char key_suffix[] = ".sym", temporary_prefix[] = ".tmp-";

enum {
	BYTE_ORDER_MARK = 0x01020304,
	TEMPORARY_DIGITS = 16,
	TEMPORARY_LIFE_S = 3600, /* a run that seems to be writing for longer than this was killed */
	USED_STEP_S = 3600,      /* precision of the time of use: reading must not mean writing */
	NAME_SIZE = STORE_KEY_MAX + sizeof(key_suffix),
};

/* Names */

static bool is_hex(const char *s, size_t len)
{
	return strspn(s, "0123456789abcdef") >= len;
}

/* "KEY.sym", with the key in lower case; false when it is not a key. */
static bool name_of_key(const char *key, char name[NAME_SIZE])
{
	size_t len = strnlen(key, STORE_KEY_MAX + 1);

	if (len < 2 || len > STORE_KEY_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		name[i] = (char)(key[i] >= 'A' && key[i] <= 'F' ? key[i] - 'A' + 'a' : key[i]);
	strcpy(name + len, key_suffix);
	return is_hex(name, len);
}

/* The key's length in "KEY.sym", 0 when the name is not of this form. */
static size_t key_in_name(const char *name)
{
	size_t len = strlen(name), suffix = strlen(key_suffix);

	if (len < 2 + suffix || len >= NAME_SIZE || strcmp(name + len - suffix, key_suffix) != 0)
		return 0;
	return is_hex(name, len - suffix) ? len - suffix : 0;
}

static bool is_temporary(const char *name)
{
	size_t prefix = strlen(temporary_prefix);

	return strncmp(name, temporary_prefix, prefix) == 0 && strlen(name + prefix) == TEMPORARY_DIGITS &&
	       is_hex(name + prefix, TEMPORARY_DIGITS);
}

/* The envelope */

static uint32_t checksum(const struct envelope *e)
{
	return libdeflate_crc32(0, e, offsetof(struct envelope, checksum));
}

/* `name` comes from name_of_key(). */
static struct envelope make_envelope(const char *name, uint32_t version, uint64_t payload_len)
{
	struct envelope e = {
		.byte_order = BYTE_ORDER_MARK,
		.word_size = sizeof(void *),
		.version = version,
		.key_len = (uint32_t)key_in_name(name),
		.payload_len = payload_len,
	};

	memcpy(e.magic, magic, sizeof(magic));
	memcpy(e.key, name, e.key_len);
	e.checksum = checksum(&e);
	return e;
}

bool store_check(const void *file, size_t len, uint64_t size, const char *key, uint32_t version)
{
	struct envelope want;
	char name[NAME_SIZE];

	if (len < sizeof(want) || size < sizeof(want) || !name_of_key(key, name))
		return false;
	want = make_envelope(name, version, size - sizeof(want));
	return memcmp(file, &want, sizeof(want)) == 0;
}

/* Opening */

static int store_open_dir(const char *path, uint64_t limit, bool create, struct err *err, struct store **out)
{
	_cleanup_(caller_end) struct caller_scope as_caller = caller_begin_identity();
	_cleanup_free_ struct store *store = calloc(1, sizeof(*store));
	_cleanup_free_ char *chosen = NULL;
	int fd, rc = 0;

	*out = NULL;
	if (!store)
		return err_set(err, ENOMEM, "out of memory");
	if (!path)
		rc = store_default_path(err, &chosen);
	else if (!(chosen = strdup(path)))
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc < 0)
		return rc;
	fd = store_dir_open(chosen, create, err);
	debug_say(fd, "opening the cache %s", chosen);
	if (fd < 0)
		return fd;
	store->dir_fd = fd;
	store->limit = limit;
	store->path = steal_ptr(chosen);
	*out = steal_ptr(store);
	return 0;
}

int store_open(const char *path, uint64_t limit, struct err *err, struct store **out)
{
	*out = NULL;
	if (!limit)
		return err_set(err, ENOENT, "its size is limited to 0");
	return store_open_dir(path, limit, true, err, out);
}

int store_open_existing(const char *path, uint64_t limit, struct err *err, struct store **out)
{
	return store_open_dir(path, limit, false, err, out);
}

void store_close(struct store *store)
{
	if (!store)
		return;
	close(store->dir_fd);
	free(store->path);
	free(store);
}

const char *store_path(const struct store *store)
{
	return store->path;
}

/* A parser has the broker open, rename and remove files; it reads and writes them itself. */

enum cache_action { CACHE_GET, CACHE_CREATE, CACHE_COMMIT, CACHE_DISCARD, CACHE_REMOVE };

/* A commit has both names. */
static int ask(enum cache_action action, const char *temporary, const char *name, struct errand_reply *reply)
{
	char names[2 * NAME_SIZE];
	struct errand errand;

	snprintf(names, sizeof(names), "%s/%s", temporary, name);
	return errand_init(&errand, ERRAND_CACHE, (int)action, 0, names) ? broker_ask(&errand, reply) : -ENAMETOOLONG;
}

/* Reading */

/* In our own directory only we can have made the file, though perhaps not with this program. */
static bool is_our_file(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && !(st->st_mode & 022);
}

static int open_file(const struct store *store, const char *name, struct stat *st)
{
	_cleanup_close_ int fd = openat(store->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0 && fstat(fd, st) == 0 && is_our_file(st) ? steal_fd(&fd) : -1;
}

static int get_file(const struct store *store, const char *name, struct stat *st)
{
	_cleanup_(caller_end) struct caller_scope as_caller = {0};
	struct errand_reply reply;

	if (broker_is_there()) {
		if (ask(CACHE_GET, "", name, &reply) < 0)
			return -1;
		*st = reply.st;
		return reply.fd;
	}
	as_caller = caller_begin_identity();
	return open_file(store, name, st);
}

static void mark_used(int fd, const struct stat *st)
{
	time_t now = time(NULL);

	/* A time in the future comes from a wrong clock. */
	if (st->st_mtime > now || now - st->st_mtime >= USED_STEP_S)
		futimens(fd, NULL);
}

int store_get(const struct store *store, const char *key, uint32_t version, struct store_entry *out)
{
	_cleanup_close_ int fd = -1;
	char head[STORE_ENVELOPE], name[NAME_SIZE];
	struct stat st;
	int ret;

	*out = (struct store_entry){0};
	if (!name_of_key(key, name))
		return -ENOENT;
	fd = get_file(store, name, &st);
	if (fd < 0 || pread(fd, head, sizeof(head), 0) != sizeof(head) ||
	    !store_check(head, sizeof(head), (uint64_t)st.st_size, key, version))
		return -ENOENT;
	ret = filemap_open(fd, (uint64_t)st.st_size, NULL, &out->map);
	if (ret < 0)
		return ret;
	mark_used(fd, &st);
	out->data = out->map.data + STORE_ENVELOPE;
	out->len = out->map.len - STORE_ENVELOPE;
	return 0;
}

void store_release(struct store_entry *entry)
{
	filemap_close(&entry->map);
	*entry = (struct store_entry){0};
}

/* Listing and removing */

/* Whether it is a regular file with a name that only this program gives. */
struct seen_file {
	char name[NAME_SIZE];
	struct stat st;
};

struct seen_files {
	VEC_FIELDS(struct seen_file);
};

static void cleanup_seen_files(struct seen_files *seen)
{
	vec_deinit(seen);
}

static int by_age(const void *a, const void *b)
{
	const struct timespec *x = &((const struct seen_file *)a)->st.st_mtim;
	const struct timespec *y = &((const struct seen_file *)b)->st.st_mtim;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* The files that have not been used for longest come first. */
static int scan(const struct store *store, struct err *err, struct seen_files *out)
{
	_cleanup_close_ int fd = openat(store->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct seen_file file;
	struct dirent *d;
	int rc = 0;

	if (!dir)
		return err_set(err, errno, "%s: %s", store->path, strerror(errno));
	steal_fd(&fd);
	while (rc == 0 && (d = readdir(dir))) {
		if (!key_in_name(d->d_name) && !is_temporary(d->d_name))
			continue;
		strcpy(file.name, d->d_name);
		if (fstatat(store->dir_fd, file.name, &file.st, AT_SYMLINK_NOFOLLOW) < 0 || !is_our_file(&file.st))
			continue;
		if (!vec_push(out, file))
			rc = err_set(err, ENOMEM, "out of memory");
	}
	if (out->len)
		qsort(out->data, out->len, sizeof(*out->data), by_age);
	return rc;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/*
 * A name proves little, but files of this program begin with its magic, or are empty, as a crash of the machine leaves
 * the last ones written. False also when the file is no longer the one that was seen: somebody has just used or
 * replaced it.
 */
static bool is_written_by_us(const struct store *store, const struct seen_file *file, struct envelope *head)
{
	struct stat st;
	_cleanup_close_ int fd = open_file(store, file->name, &st);

	memset(head, 0, sizeof(*head));
	if (fd < 0 || !same_file(&st, &file->st))
		return false;
	if (st.st_size == 0)
		return true;
	return pread(fd, head, sizeof(*head), 0) >= (ssize_t)sizeof(magic) &&
	       memcmp(head->magic, magic, sizeof(magic)) == 0;
}

/*
 * Several runs may do this at once. Each lists the files after its own is in place, so the last one sees all of them,
 * and a file that another run removed meanwhile is gone as well (test_many_processes).
 */
static void evict(const struct store *store, const char *except)
{
	_cleanup_(cleanup_seen_files) struct seen_files seen = {0};
	struct envelope head;
	uint64_t total = 0;
	time_t now = time(NULL);

	if (scan(store, NULL, &seen) < 0)
		return;
	for (size_t i = 0; i < seen.len; i++)
		total += is_temporary(seen.data[i].name) ? 0 : (uint64_t)seen.data[i].st.st_size;
	for (size_t i = 0; i < seen.len; i++) {
		const struct seen_file *file = &seen.data[i];
		bool temporary = is_temporary(file->name);

		if (temporary ? now - file->st.st_mtime < TEMPORARY_LIFE_S
			      : total <= store->limit || strcmp(file->name, except) == 0)
			continue;
		if (is_written_by_us(store, file, &head))
			unlinkat(store->dir_fd, file->name, 0);
		if (!temporary)
			total -= (uint64_t)file->st.st_size; /* what we must not remove we do not count */
	}
}

int store_list(const struct store *store, struct err *err, struct store_files *out)
{
	_cleanup_(caller_end) struct caller_scope as_caller = caller_begin_identity();
	_cleanup_(cleanup_seen_files) struct seen_files seen = {0};
	int rc = scan(store, err, &seen);

	*out = (struct store_files){0};
	if (rc < 0)
		return rc;
	for (size_t i = seen.len; i-- > 0;) {
		const struct seen_file *seen_file = &seen.data[i];
		struct store_file file = {
			.size = (uint64_t)seen_file->st.st_size,
			.used = (int64_t)seen_file->st.st_mtime,
		};
		struct envelope head;

		if (is_temporary(seen_file->name) || !is_written_by_us(store, seen_file, &head))
			continue;
		memcpy(file.key, seen_file->name, key_in_name(seen_file->name));
		file.damaged = !store_check(&head, sizeof(head), file.size, file.key, head.version);
		if (!vec_push(out, file)) {
			vec_deinit(out);
			return err_set(err, ENOMEM, "out of memory");
		}
		out->bytes += file.size;
	}
	return 0;
}

int store_clear(const struct store *store, struct err *err, struct store_cleared *out)
{
	_cleanup_(caller_end) struct caller_scope as_caller = caller_begin_identity();
	_cleanup_(cleanup_seen_files) struct seen_files seen = {0};
	int rc = scan(store, err, &seen);

	*out = (struct store_cleared){0};
	for (size_t i = 0; rc == 0 && i < seen.len; i++) {
		const struct seen_file *file = &seen.data[i];
		struct envelope head;

		if (!is_written_by_us(store, file, &head))
			continue;
		if (unlinkat(store->dir_fd, file->name, 0) == 0) {
			out->files++;
			out->bytes += (uint64_t)file->st.st_size;
		} else if (errno != ENOENT) {
			err_set(err, errno, "%s/%s: %s", store->path, file->name, strerror(errno));
			out->failed++;
		}
	}
	return rc;
}

/* Writing */

static int write_all(int fd, const void *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			data = (const char *)data + n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* A new file with an unused name; the descriptor or -errno. */
static int create_temporary(const struct store *store, char name[NAME_SIZE])
{
	for (int attempt = 0; attempt < 16; attempt++) {
		uint64_t number;
		int fd;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -errno;
		snprintf(name, NAME_SIZE, "%s%0*llx", temporary_prefix, TEMPORARY_DIGITS, (unsigned long long)number);
		fd = openat(store->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
	}
	return -EEXIST;
}

static int write_parts(int fd, const struct envelope *e, const struct iovec *parts, int nparts)
{
	int rc = write_all(fd, e, sizeof(*e));

	for (int i = 0; rc == 0 && i < nparts; i++)
		rc = write_all(fd, parts[i].iov_base, parts[i].iov_len);
	return rc;
}

static int begin_file(const struct store *store, char temporary[NAME_SIZE])
{
	_cleanup_(caller_end) struct caller_scope as_caller = {0};
	struct errand_reply reply;

	if (broker_is_there()) {
		int rc = ask(CACHE_CREATE, "", "", &reply);

		snprintf(temporary, NAME_SIZE, "%.*s", (int)NAME_SIZE - 1, rc == 0 ? reply.data : "");
		return rc < 0 ? rc : reply.fd;
	}
	as_caller = caller_begin_identity();
	return create_temporary(store, temporary);
}

static int commit_file(const struct store *store, const char *temporary, const char *name)
{
	_cleanup_(caller_end) struct caller_scope as_caller = {0};
	struct errand_reply reply;

	if (broker_is_there())
		return ask(CACHE_COMMIT, temporary, name, &reply);
	as_caller = caller_begin_identity();
	if (renameat(store->dir_fd, temporary, store->dir_fd, name) < 0)
		return -errno;
	evict(store, name);
	return 0;
}

static void remove_file(const struct store *store, enum cache_action action, const char *name)
{
	_cleanup_(caller_end) struct caller_scope as_caller = {0};
	struct errand_reply reply;

	if (broker_is_there()) {
		ask(action, "", name, &reply);
		return;
	}
	as_caller = caller_begin_identity();
	unlinkat(store->dir_fd, name, 0);
}

/* No fsync: a crash of the machine costs at most this file, and its reader will notice. */
static int write_file(const struct store *store, const char *name, const struct envelope *e, const struct iovec *parts,
		      int nparts)
{
	char temporary[NAME_SIZE];
	int rc, fd = begin_file(store, temporary);

	if (fd < 0)
		return fd;
	rc = write_parts(fd, e, parts, nparts);
	if (close(fd) < 0 && rc == 0)
		rc = -errno; /* NFS reports only here that the disk is full */
	if (rc == 0)
		rc = commit_file(store, temporary, name);
	if (rc < 0)
		remove_file(store, CACHE_DISCARD, temporary);
	return rc;
}

/* The largest file that may be written. Beyond RLIMIT_FSIZE a signal would end the run. */
static uint64_t largest_file(const struct store *store)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > store->limit)
		return store->limit;
	return limit.rlim_cur;
}

int store_put(const struct store *store, const char *key, uint32_t version, const struct iovec *parts, int nparts,
	      struct err *err)
{
	uint64_t len = 0, largest = largest_file(store);
	char name[NAME_SIZE];
	struct envelope e;
	int rc;

	if (!name_of_key(key, name))
		return err_set(err, EINVAL, "'%.*s' is not a build-id", STORE_KEY_MAX, key);
	for (int i = 0; i < nparts; i++)
		if (__builtin_add_overflow(len, (uint64_t)parts[i].iov_len, &len))
			len = UINT64_MAX;
	if (largest < sizeof(e) || len > largest - sizeof(e))
		return err_set(err, EFBIG, "%llu bytes for %s are more than the cache's limit of %llu",
			       (unsigned long long)len, key, (unsigned long long)largest);
	e = make_envelope(name, version, len);
	rc = write_file(store, name, &e, parts, nparts);
	if (rc < 0)
		return err_set(err, -rc, "%s/%s cannot be written: %s", store->path, name, strerror(-rc));
	return 0;
}

void store_remove(const struct store *store, const char *key)
{
	char name[NAME_SIZE];

	if (name_of_key(key, name))
		remove_file(store, CACHE_REMOVE, name);
}

/* The broker's side */

/* "TEMPORARY/NAME": each must be a name that only this program gives, or empty where it does not count. */
static bool split_names(const char *names, char temporary[NAME_SIZE], char name[NAME_SIZE])
{
	const char *slash = strchr(names, '/');

	if (!slash || slash - names >= NAME_SIZE || strlen(slash + 1) >= NAME_SIZE)
		return false;
	snprintf(temporary, NAME_SIZE, "%.*s", (int)(slash - names), names);
	snprintf(name, NAME_SIZE, "%s", slash + 1);
	return true;
}

static void serve(void *ctx, const struct errand *errand, struct errand_reply *reply)
{
	const struct store *store = ctx;
	char temporary[NAME_SIZE], name[NAME_SIZE];

	if (!split_names(errand->data, temporary, name))
		return;
	switch (errand->number[0]) {
	case CACHE_GET:
		reply->fd = key_in_name(name) ? get_file(store, name, &reply->st) : -1;
		reply->rc = reply->fd < 0 ? -ENOENT : 0;
		break;
	case CACHE_CREATE:
		reply->fd = begin_file(store, temporary);
		reply->rc = reply->fd < 0 ? reply->fd : 0;
		if (reply->rc == 0)
			errand_answer(reply, temporary);
		break;
	case CACHE_COMMIT:
		if (is_temporary(temporary) && key_in_name(name))
			reply->rc = commit_file(store, temporary, name);
		break;
	case CACHE_DISCARD:
	case CACHE_REMOVE:
		if (errand->number[0] == CACHE_DISCARD ? is_temporary(name) : key_in_name(name) > 0) {
			remove_file(store, (enum cache_action)errand->number[0], name);
			reply->rc = 0;
		}
		break;
	}
}

void store_errand_add(struct parser_job *job, const struct store *store)
{
	if (store)
		job->services[ERRAND_CACHE] = (struct service){serve, (void *)store};
}
