/* SPDX-License-Identifier: MIT */
#include "cmd/cache.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/parse.h"
#include "report/json_writer.h"

static const char help[] =
	"Usage: stakeout cache [OPTION…]\n"
	"\n"
	"Shows where the results of reading symbols and debug info are kept, how many and how large they are.\n"
	"\n"
	"      --clear            remove them\n"
	"      --json             one JSON document\n"
	"  -v, --verbose          each of them: build-id, size and when it was last used\n"
	DEBUG_HELP "  -h, --help             this help\n"
	"\n"
	"The directory is $XDG_CACHE_HOME/stakeout, else $HOME/.cache/stakeout. $STAKEOUT_CACHE_SIZE limits\n"
	"its size: bytes, or with a suffix k, M or G (256M); 0 switches the cache off.\n"
	"\n"
	"Exit status: 0 done, 1 no cache can be used (the reason is shown), 2 wrong usage, 3 some files are\n"
	"left.\n";

struct cache_options {
	bool clear;
	bool json;
	bool verbose;
};

static int read_limit(struct err *err, uint64_t *out)
{
	const char *text = getenv("STAKEOUT_CACHE_SIZE");

	*out = STORE_DEFAULT_LIMIT;
	if (text && *text && !parse_size(text, 0, UINT64_MAX, out))
		return err_set(err, EINVAL, "STAKEOUT_CACHE_SIZE takes bytes with a suffix k, M or G, not '%s'", text);
	return 0;
}

int cache_open(struct err *err, struct store **out)
{
	uint64_t limit;
	int rc = read_limit(err, &limit);

	*out = NULL;
	if (rc == 0 && !limit)
		rc = err_set(err, ENOENT, "STAKEOUT_CACHE_SIZE is 0");
	return rc < 0 ? rc : store_open(NULL, limit, err, out);
}

/* What the command shows. */
struct cache {
	struct cache_options options;
	char *path;
	struct store *store; /* NULL while there is no directory */
	uint64_t limit;
	struct store_files files;
	struct store_cleared cleared;
};

static void cache_deinit(struct cache *c)
{
	free(c->path);
	store_close(c->store);
	vec_deinit(&c->files);
}

/* "0 bytes", "17.3 KiB", "256 MiB" */
enum { SIZE_LEN = 32 };

static const char *format_size(uint64_t bytes, char buf[SIZE_LEN])
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(buf, SIZE_LEN, "%" PRIu64 " bytes", bytes);
		return buf;
	}
	for (; value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		value /= 1024;
	snprintf(buf, SIZE_LEN, "%.*f %s", value == (double)(uint64_t)value ? 0 : 1, value, units[unit]);
	return buf;
}

/* In local time for people, in UTC for programs. */
static void format_time(int64_t seconds, bool utc, char buf[32])
{
	time_t time = (time_t)seconds;
	struct tm tm;

	buf[0] = '\0';
	if (utc ? gmtime_r(&time, &tm) : localtime_r(&time, &tm))
		strftime(buf, 32, utc ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d %H:%M", &tm);
}

/* How much of a key is the build-id: the rest says which file with it the entry was made from. */
static int build_id_len(const char *key)
{
	enum { IDENTITY_DIGITS = 16, MIN_BUILD_ID = 2 };
	size_t len = strlen(key);

	return (int)(len >= MIN_BUILD_ID + IDENTITY_DIGITS ? len - IDENTITY_DIGITS : len);
}

static void print_text(const struct cache *c)
{
	char size[SIZE_LEN], used[32];

	printf("path:    %s\n", c->path);
	if (c->options.clear) {
		printf("removed: %" PRIu64 " file%s, %s\n", c->cleared.files, c->cleared.files == 1 ? "" : "s",
		       format_size(c->cleared.bytes, size));
		return;
	}
	printf("files:   %zu\n", c->files.len);
	printf("size:    %s\n", format_size(c->files.bytes, size));
	printf("limit:   %s%s\n", format_size(c->limit, size), c->limit ? "" : " (the cache is not used)");
	if (!c->options.verbose || !c->files.len)
		return;
	printf("\n%-40s %12s  %s\n", "build-id", "size", "last used");
	for (size_t i = 0; i < c->files.len; i++) {
		const struct store_file *file = &c->files.data[i];

		format_time(file->used, false, used);
		printf("%-40.*s %12s  %s%s\n", build_id_len(file->key), file->key, format_size(file->size, size), used,
		       file->damaged ? "  damaged" : "");
	}
}

/* docs/schema/cache.schema.json describes this document. */
static void print_json(const struct cache *c)
{
	struct json j = {.out = stdout};
	char used[32], build_id[STORE_KEY_MAX + 1];

	json_object(&j, NULL);
	json_string(&j, "schema", "stakeout.cache/1");
	json_string(&j, "path", c->path);
	json_uint(&j, "files", c->files.len);
	json_uint(&j, "bytes", c->files.bytes);
	json_uint(&j, "limit_bytes", c->limit);
	json_array(&j, "entries");
	for (size_t i = 0; i < c->files.len; i++) {
		const struct store_file *file = &c->files.data[i];

		format_time(file->used, true, used);
		snprintf(build_id, sizeof(build_id), "%.*s", build_id_len(file->key), file->key);
		json_object(&j, NULL);
		json_string(&j, "build_id", build_id);
		json_uint(&j, "bytes", file->size);
		json_string(&j, "last_used", used);
		json_bool(&j, "damaged", file->damaged);
		json_object_end(&j);
	}
	json_array_end(&j);
	if (c->options.clear) {
		json_object(&j, "removed");
		json_uint(&j, "files", c->cleared.files);
		json_uint(&j, "bytes", c->cleared.bytes);
		json_uint(&j, "failed", c->cleared.failed);
		json_object_end(&j);
	} else {
		json_null(&j, "removed");
	}
	json_object_end(&j);
	putchar('\n');
}

/* A directory that is not there yet is an empty cache. */
static int look(struct cache *c, struct err *err)
{
	int rc = store_default_path(err, &c->path);

	if (rc == 0)
		rc = store_open_existing(c->path, c->limit, err, &c->store);
	if (rc < 0)
		return rc == -ENOENT && c->path ? 0 : rc;
	if (c->options.clear)
		rc = store_clear(c->store, err, &c->cleared);
	return rc < 0 ? rc : store_list(c->store, c->cleared.failed ? NULL : err, &c->files);
}

static int show(struct cache *c)
{
	struct err err = {0};

	if (look(c, &err) < 0) {
		fprintf(stderr, "stakeout: no cache: %s\n", err.msg);
		return EXIT_NOTHING;
	}
	if (c->options.json)
		print_json(c);
	else
		print_text(c);
	if (cmd_printed() != EXIT_COMPLETE)
		return EXIT_NOTHING;
	if (c->cleared.failed)
		fprintf(stderr, "stakeout: %" PRIu64 " could not be removed: %s\n", c->cleared.failed, err.msg);
	return c->cleared.failed ? EXIT_INCOMPLETE : EXIT_COMPLETE;
}

int cmd_cache(int argc, char **argv)
{
	enum { OPT_CLEAR = 1, OPT_JSON };
	static const struct option long_options[] = {
		{"clear", no_argument, NULL, OPT_CLEAR},
		{"json", no_argument, NULL, OPT_JSON},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	_cleanup_(cache_deinit) struct cache c = {0};
	struct err err = {0};
	int opt;

	while ((opt = getopt_long(argc, argv, "vh", long_options, NULL)) != -1) {
		if (opt == '?')
			return cmd_misused(argv[0], "");
		if (opt == 'h') {
			fputs(help, stdout);
			return cmd_printed();
		}
		c.options.clear |= opt == OPT_CLEAR;
		c.options.json |= opt == OPT_JSON;
		c.options.verbose |= opt == 'v';
	}
	if (optind < argc)
		return cmd_misused(argv[0], "it takes no arguments");
	if (read_limit(&err, &c.limit) < 0 && !c.options.clear)
		return cmd_misused(argv[0], err.msg);
	return show(&c);
}
