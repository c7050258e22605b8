/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_STORE_H
#define STAKEOUT_SYMBOL_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/filemap.h"
#include "base/vec.h"
#include "privilege/broker.h"

/*
 * The cache directory: one file for each key, KEY.sym, of at most `limit` bytes together. The contents are the writer's
 * business; the store puts an envelope in front and accepts only files with the right one. The envelope has a checksum
 * of its own bytes only: a payload is mapped, and most of it is never read. Its reader must check the parts that it
 * uses as strictly as those of any foreign file, since a crash of the machine or a bad disk can leave anything behind a
 * good envelope.
 *
 * A key identifies the contents by build-id and by the file that has it: 2 to 128 hexadecimal digits, in upper or lower
 * case.
 *
 * Any number of processes may use one directory, and any number of threads one struct store: it does not change after
 * store_open. Files are replaced by rename, so a reader sees a whole one or none; one that is removed stays mapped
 * where it is in use.
 */
struct store;

enum {
	STORE_KEY_MAX = 128,
	STORE_ALIGN = 64,     /* of a payload's address */
	STORE_ENVELOPE = 192, /* bytes before the payload; the last four are the checksum */
};

#define STORE_DEFAULT_LIMIT (UINT64_C(256) << 20) /* bytes */

/*
 * Where the cache is by default: $XDG_CACHE_HOME/stakeout, else $HOME/.cache/stakeout. -ENOENT when neither is set to
 * an absolute path. The string is for free().
 */
int store_default_path(struct err *err, char **out);

/*
 * Opens the directory `path` (NULL: the default) and creates it, for its owner only, if it is missing. Refused, with a
 * sentence that says why there is no cache: a limit of 0; a directory that another user owns, may write to or has put
 * there as a link; a directory below another user's (such as the $HOME that sudo leaves in place).
 */
int store_open(const char *path, uint64_t limit, struct err *err, struct store **out);

/* The same, but -ENOENT if there is none yet, and any limit will do: for listing and clearing. */
int store_open_existing(const char *path, uint64_t limit, struct err *err, struct store **out);

void store_close(struct store *store); /* NULL is legal */

/* A mapped payload. It is private to this process, but a file that is cut short meanwhile reads as zeroes. */
struct store_entry {
	const void *data; /* at a multiple of STORE_ALIGN */
	size_t len;
	struct filemap map; /* the whole file */
};

/*
 * Gets the payload that was stored for the key, in this version of its format, and marks it as used now. -ENOENT when
 * there is none, or only one that is damaged, foreign or of another version: store_put replaces those. Release it with
 * store_release; the entry does not need the store any more.
 */
int store_get(const struct store *store, const char *key, uint32_t version, struct store_entry *out);
void store_release(struct store_entry *entry); /* also for an entry that is all zero */

/*
 * Stores the parts, one after the other, as the payload of the key, in place of what was there. Then the files that
 * have not been used for longest are removed until the rest is within the limit. -EFBIG when it would be too large by
 * itself. A failure leaves what was there before, and can be ignored.
 */
int store_put(const struct store *store, const char *key, uint32_t version, const struct iovec *parts, int nparts,
	      struct err *err);

/* Forgets what was stored for the key. */
void store_remove(const struct store *store, const char *key);

/*
 * Whether `file` is the beginning, at least STORE_ENVELOPE bytes, of a whole file of `size` bytes for this key and
 * version. Used by store_get; exported for tests.
 */
bool store_check(const void *file, size_t len, uint64_t size, const char *key, uint32_t version);

/* For `stakeout cache` */

struct store_file {
	char key[STORE_KEY_MAX + 1];
	uint64_t size; /* bytes, envelope included */
	int64_t used;  /* seconds since 1970 */
	bool damaged;  /* will be replaced when its key is stored again */
};

struct store_files {
	VEC_FIELDS(struct store_file); /* last used first */
	uint64_t bytes;
};

/* What store_clear did. */
struct store_cleared {
	uint64_t files;
	uint64_t bytes;
	uint64_t failed; /* could not be removed; err says why for the last one */
};

const char *store_path(const struct store *store);

/* The files of the store. Others that lie in its directory are not listed. Release with vec_deinit. */
int store_list(const struct store *store, struct err *err, struct store_files *out);

/* Removes them, and what killed runs left half written; nothing else, and not the directory. */
int store_clear(const struct store *store, struct err *err, struct store_cleared *out);

/* A broker opens, renames and removes files of the store for its parser. NULL is legal. */
void store_errand_add(struct parser_job *job, const struct store *store);

#endif
