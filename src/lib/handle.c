/* SPDX-License-Identifier: MIT */
#include "lib/handle.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "lib/abi.h"
#include "symbol/debuginfod.h"
#include "symbol/store.h"
#include "target/filesystems.h"
#include "target/helper.h"
#include "target/patience.h"

enum { DOWNLOAD_TIMEOUT_S = 60 };

/* Patience, mounts and helpers are those of the whole process: target/patience.h, target/filesystems.h, target/helper.h. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned handles; /* that there are */
static unsigned calls;   /* that are under way */

static void add_handle(void)
{
	pthread_mutex_lock(&lock);
	handles++;
	pthread_mutex_unlock(&lock);
}

/* The last one leaves nothing behind. */
static void remove_handle(void)
{
	pthread_mutex_lock(&lock);
	if (--handles == 0) {
		helper_reap_all();
		filesystems_forget();
		patience_reset();
	}
	pthread_mutex_unlock(&lock);
}

void handle_begin(struct stakeout *s)
{
	s->err = (struct err){0};
	pthread_mutex_lock(&lock);
	if (!calls++)
		patience_resume();
	patience_set(s->patience_ns);
	pthread_mutex_unlock(&lock);
}

void handle_end(void)
{
	pthread_mutex_lock(&lock);
	calls--;
	pthread_mutex_unlock(&lock);
}

struct stakeout *handle_use(struct stakeout *s)
{
	atomic_fetch_add(&s->users, 1);
	return s;
}

void handle_leave(struct stakeout *s)
{
	if (!s || atomic_fetch_sub(&s->users, 1) > 1)
		return;
	debuginfod_destroy(s->names.symbols.debuginfod);
	store_close(s->cache);
	notes_deinit(&s->notes);
	free(s);
	remove_handle();
}

bool handle_tell(const struct stakeout *s, struct notes *out)
{
	notes_add_all(out, &s->notes);
	return patience_tell(out);
}

static void open_cache(struct stakeout *s, const struct stakeout_options *o)
{
	struct err err = {0};

	if (store_open(o->cache_dir, o->cache_bytes ? o->cache_bytes : STORE_DEFAULT_LIMIT, &err, &s->cache) < 0) {
		s->cache = NULL;
		notes_add(&s->notes, "no cache: %s", err.msg);
	}
	s->names.symbols.cache = s->cache;
}

static void open_servers(struct stakeout *s, const struct stakeout_options *o)
{
	uint64_t timeout = o->debuginfod_timeout_s ? o->debuginfod_timeout_s : DOWNLOAD_TIMEOUT_S;
	const struct debuginfod_options options = {
		.timeout = timeout < INT_MAX ? (int)timeout : INT_MAX,
		.keep_signals = true,
	};
	struct err err = {0};

	if (debuginfod_create(&options, &err, &s->names.symbols.debuginfod) < 0) {
		s->names.symbols.debuginfod = NULL;
		notes_add(&s->notes, "debuginfod is not asked: %s", err.msg);
	}
}

int stakeout_create(const struct stakeout_options *options, struct stakeout **out)
{
	const uint64_t flags = STAKEOUT_CACHE | STAKEOUT_DEBUGINFOD | STAKEOUT_NO_DEMANGLE;
	struct stakeout_options o;
	struct stakeout *s;
	int rc = abi_read_options(options, &o, sizeof(o), flags, NULL);

	*out = NULL;
	if (rc < 0)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	atomic_init(&s->users, 1);
	s->patience_ns = o.patience_ns ? o.patience_ns : (uint64_t)PATIENCE_DEFAULT_MS * 1000000;
	s->names.demangle = !(o.flags & STAKEOUT_NO_DEMANGLE);
	add_handle();
	if (o.flags & STAKEOUT_CACHE)
		open_cache(s, &o);
	if (o.flags & STAKEOUT_DEBUGINFOD)
		open_servers(s, &o);
	*out = s;
	return 0;
}

void stakeout_free(struct stakeout *s)
{
	handle_leave(s);
}

const char *stakeout_error(const struct stakeout *s)
{
	return s->err.msg;
}

void stakeout_interrupt(struct stakeout *s)
{
	patience_interrupt();
}

const char *stakeout_version(void)
{
	return STAKEOUT_VERSION;
}
