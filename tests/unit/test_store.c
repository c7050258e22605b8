/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <errno.h>
#include <libdeflate.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "symbol/store.h"

enum { VERSION = 7, KIB = 1024 };

static const char key[] = "0123456789abcdef0123456789abcdef01234567";

static struct store *open_store(const struct scratch *s, uint64_t limit)
{
	char path[256];
	struct store *store = NULL;
	struct err err = {0};

	snprintf(path, sizeof(path), "%s/cache", s->dir);
	if (store_open(path, limit, &err, &store) != 0)
		fail_msg("%s", err.msg);
	return store;
}

static int put(const struct store *store, const char *k, const void *data, size_t len)
{
	struct iovec part = {.iov_base = (void *)data, .iov_len = len};
	struct err err = {0};
	int rc = store_put(store, k, VERSION, &part, 1, &err);

	assert_true(rc == 0 || (err.code == -rc && err.msg[0]));
	return rc;
}

/* A payload of this size, all zero. */
static int put_size(const struct store *store, const char *k, size_t len)
{
	char *data = calloc(1, len);
	int rc = put(store, k, data, len);

	free(data);
	return rc;
}

static bool has(const struct store *store, const char *k)
{
	struct store_entry entry;
	int rc = store_get(store, k, VERSION, &entry);

	assert_true(rc == 0 || (rc == -ENOENT && !entry.map.data));
	store_release(&entry);
	return rc == 0;
}

static void assert_holds(const struct store *store, const char *k, const char *text)
{
	struct store_entry entry;

	assert_int_equal(store_get(store, k, VERSION, &entry), 0);
	assert_int_equal(entry.len, strlen(text));
	assert_memory_equal(entry.data, text, entry.len);
	assert_int_equal((uintptr_t)entry.data % STORE_ALIGN, 0);
	store_release(&entry);
	assert_null(entry.data);
}

static bool there(const struct scratch *s, const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	return lstat(path, &st) == 0;
}

static void age(const struct scratch *s, const char *name, time_t seconds)
{
	struct timespec then = {.tv_sec = time(NULL) - seconds};
	const struct timespec times[2] = {then, then};
	char path[256];

	snprintf(path, sizeof(path), "%s/cache/%s", s->dir, name);
	assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void test_what_is_put_is_got(void **state)
{
	const struct iovec parts[] = {
		{.iov_base = (void *)"one ", .iov_len = 4},
		{.iov_base = NULL, .iov_len = 0},
		{.iov_base = (void *)"two", .iov_len = 3},
	};
	struct store_entry entry;
	struct scratch s;
	struct store *store;

	scratch_init(&s);
	store = open_store(&s, STORE_DEFAULT_LIMIT);
	assert_false(has(store, key));
	assert_int_equal(store_put(store, key, VERSION, parts, 3, NULL), 0);
	assert_holds(store, key, "one two");
	assert_holds(store, "0123456789ABCDEF0123456789ABCDEF01234567", "one two");
	assert_int_equal(store_get(store, key, VERSION + 1, &entry), -ENOENT);
	assert_int_equal(put(store, key, "three", 5), 0);
	assert_holds(store, key, "three");
	assert_int_equal(put(store, key, "", 0), 0);
	assert_holds(store, key, "");

	assert_int_equal(put(store, key, "mapped", 6), 0);
	assert_int_equal(store_get(store, key, VERSION, &entry), 0);
	assert_int_equal(put(store, key, "newer", 5), 0);
	store_close(store);
	assert_memory_equal(entry.data, "mapped", 6);
	store_release(&entry);
	scratch_run(&s, "test $(ls -A cache | wc -l) = 1 && test $(stat -c %%a cache/*) = 600");
	scratch_deinit(&s);
}

static void test_keys(void **state)
{
	static const char *const wrong[] = {"", "a", "..", "../ab", "ab/cd", "0g", "ab.sym", "ab cd", "\xff\xff"};
	char longest[STORE_KEY_MAX + 2];
	struct scratch s;
	struct store *store;

	scratch_init(&s);
	store = open_store(&s, STORE_DEFAULT_LIMIT);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(put(store, wrong[i], "x", 1), -EINVAL);
		assert_false(has(store, wrong[i]));
	}
	memset(longest, 'e', sizeof(longest));
	longest[STORE_KEY_MAX + 1] = '\0';
	assert_int_equal(put(store, longest, "x", 1), -EINVAL);
	longest[STORE_KEY_MAX] = '\0';
	assert_int_equal(put(store, longest, "long", 4), 0);
	assert_int_equal(put(store, "ee", "short", 5), 0);
	assert_holds(store, longest, "long");
	assert_holds(store, "ee", "short");
	store_close(store);
	scratch_deinit(&s);
}

/* Every byte of the envelope matters, and so does the file's size. */
static void test_damaged_files(void **state)
{
	struct scratch s;
	struct store *store;
	size_t len;
	char *file;

	scratch_init(&s);
	store = open_store(&s, STORE_DEFAULT_LIMIT);
	assert_int_equal(put(store, "abcd", "payload", 7), 0);
	file = scratch_read(&s, "cache/abcd.sym", &len);
	assert_int_equal(len, STORE_ENVELOPE + 7);
	for (size_t i = 0; i < STORE_ENVELOPE; i++) {
		file[i] ^= 0x10;
		scratch_write(&s, "cache/abcd.sym", file, len);
		assert_false(has(store, "abcd"));
		file[i] ^= 0x10;
	}
	for (size_t cut = 0; cut < len; cut++) {
		scratch_write(&s, "cache/abcd.sym", file, cut);
		assert_false(has(store, "abcd"));
	}
	scratch_write(&s, "cache/abcd.sym", file, len);
	assert_holds(store, "abcd", "payload");
	scratch_run(&s, "echo >> cache/abcd.sym");
	assert_false(has(store, "abcd"));

	scratch_write(&s, "cache/abce.sym", file, len); /* right, but of another key */
	assert_false(has(store, "abce"));
	assert_int_equal(put(store, "abce", "mine", 4), 0);
	assert_holds(store, "abce", "mine");
	free(file);
	store_close(store);
	scratch_deinit(&s);
}

/* The mark of a machine with the other byte order, under a checksum that is right. */
static void test_foreign_byte_order(void **state)
{
	const size_t summed = STORE_ENVELOPE - sizeof(uint32_t);
	uint8_t file[STORE_ENVELOPE + 1];
	uint32_t checksum;
	struct scratch s;
	struct store *store;
	size_t len;
	char *ours;

	scratch_init(&s);
	store = open_store(&s, STORE_DEFAULT_LIMIT);
	assert_int_equal(put(store, "ab", "x", 1), 0);
	ours = scratch_read(&s, "cache/ab.sym", &len);
	assert_int_equal(len, sizeof(file));
	assert_true(store_check(ours, len, len, "ab", VERSION));
	assert_false(store_check(ours, STORE_ENVELOPE - 1, len, "ab", VERSION));
	memcpy(file, ours, len);
	for (int i = 0; i < 4; i++)
		file[8 + i] = (uint8_t)ours[11 - i]; /* the byte order mark follows the magic */
	assert_memory_not_equal(file, ours, summed);
	checksum = libdeflate_crc32(0, file, summed);
	memcpy(file + summed, &checksum, sizeof(checksum));
	assert_false(store_check(file, len, len, "ab", VERSION));
	free(ours);
	store_close(store);
	scratch_deinit(&s);
}

static void test_not_regular_files(void **state)
{
	struct scratch s;
	struct store *store;

	scratch_init(&s);
	store = open_store(&s, STORE_DEFAULT_LIMIT);
	assert_int_equal(put(store, "ab", "outside", 7), 0);
	scratch_run(&s, "mv cache/ab.sym outside && ln -s ../outside cache/ab.sym && mkfifo cache/cd.sym");
	assert_false(has(store, "ab"));
	assert_false(has(store, "cd"));
	assert_int_equal(put(store, "ab", "inside", 6), 0);
	assert_int_equal(put(store, "cd", "file", 4), 0);
	assert_holds(store, "ab", "inside");
	assert_holds(store, "cd", "file");
	scratch_run(&s, "tail -c 7 outside | grep -q outside && chmod 660 cache/cd.sym");
	assert_false(has(store, "cd"));
	store_close(store);
	scratch_deinit(&s);
}

/* Directories */

/* What opening DIR/name gives. */
static int try_open(const struct scratch *s, const char *name)
{
	struct store *store = NULL;
	struct err err = {0};
	char path[256];
	int rc;

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	rc = store_open(path, KIB, &err, &store);
	assert_int_equal(rc == 0, store != NULL);
	assert_true(rc == 0 || (err.code == -rc && err.msg[0]));
	store_close(store);
	return rc;
}

static void test_directory_is_made(void **state)
{
	struct store *store = NULL;
	struct scratch s;
	char path[256];

	scratch_init(&s);
	snprintf(path, sizeof(path), "%s/a/b/cache", s.dir);
	assert_int_equal(store_open(path, 0, NULL, &store), -ENOENT);
	assert_int_equal(store_open_existing(path, KIB, NULL, &store), -ENOENT);
	assert_false(there(&s, "a"));
	assert_int_equal(try_open(&s, "a/b/cache"), 0);
	scratch_run(&s, "test \"$(stat -c %%a a a/b a/b/cache | sort -u)\" = 700");
	assert_int_equal(store_open_existing(path, 0, NULL, &store), 0);
	assert_string_equal(store_path(store), path);
	store_close(store);
	scratch_run(&s, "chmod 755 a/b a/b/cache");
	assert_int_equal(try_open(&s, "a/b/cache"), 0);
	scratch_run(&s, "test $(stat -c %%a a/b/cache) = 700 && test $(stat -c %%a a/b) = 755");
	scratch_deinit(&s);
}

static void test_directory_is_refused(void **state)
{
	struct store *store;
	struct scratch s;

	scratch_init(&s);
	assert_int_equal(store_open("relative/cache", KIB, NULL, &store), -EINVAL);
	scratch_run(&s, "mkdir group world && chmod 770 group && chmod 707 world && touch file");
	assert_int_equal(try_open(&s, "group"), -EPERM);
	assert_int_equal(try_open(&s, "world"), -EPERM);
	assert_int_equal(try_open(&s, "file"), -ENOTDIR);
	assert_int_equal(try_open(&s, "file/cache"), -ENOTDIR);
	scratch_run(&s, "mkdir disk && chmod 755 disk && ln -s disk link && ln -s nowhere broken");
	assert_int_equal(try_open(&s, "link"), 0);
	scratch_run(&s, "test $(stat -c %%a disk) = 755");
	assert_int_equal(try_open(&s, "broken"), -ENOENT);
	scratch_deinit(&s);
}

static void test_directory_of_another_user(void **state)
{
	struct scratch s;

	if (geteuid() != 0) {
		print_message("skipped: only root can give files away\n");
		skip();
	}
	scratch_init(&s);
	scratch_run(&s, "mkdir -p theirs home/.cache && ln -s theirs link && mkdir mine && ln -s mine planted && "
			"chown 65534 theirs home && chown -h 65534 planted");
	assert_int_equal(try_open(&s, "theirs"), -EPERM);
	assert_int_equal(try_open(&s, "link"), -EPERM);
	assert_int_equal(try_open(&s, "planted"), -EPERM);
	assert_int_equal(try_open(&s, "theirs/new"), -EPERM);
	assert_int_equal(try_open(&s, "theirs/new/cache"), -EPERM);
	assert_false(there(&s, "theirs/new"));
	scratch_deinit(&s);
}

/* What the environment says, as a path below the scratch directory; "" when there is no cache. */
static void assert_default(const struct scratch *s, const char *xdg, const char *home, const char *want)
{
	struct err err = {0};
	char *path = NULL;
	int rc;

	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	if (xdg)
		setenv("XDG_CACHE_HOME", xdg, 1);
	if (home)
		setenv("HOME", home, 1);
	rc = store_default_path(&err, &path);
	if (*want) {
		assert_int_equal(rc, 0);
		assert_int_equal(strncmp(path, s->dir, strlen(s->dir)), 0);
		assert_string_equal(path + strlen(s->dir), want);
	} else {
		assert_true(rc < 0 && err.code == -rc && err.msg[0] && !path);
	}
	free(path);
}

static void test_default_path(void **state)
{
	char home[128], theirs[128];
	struct store *store;
	struct scratch s;

	scratch_init(&s);
	snprintf(home, sizeof(home), "%s/home", s.dir);
	snprintf(theirs, sizeof(theirs), "%s/theirs", s.dir);
	assert_default(&s, home, "/nowhere", "/home/stakeout");
	assert_default(&s, NULL, home, "/home/.cache/stakeout");
	assert_default(&s, "", home, "/home/.cache/stakeout");
	assert_default(&s, "relative", home, "/home/.cache/stakeout");
	assert_default(&s, NULL, NULL, "");
	assert_default(&s, NULL, "relative", "");
	assert_int_equal(store_open(NULL, KIB, NULL, &store), -ENOENT);
	assert_default(&s, NULL, home, "/home/.cache/stakeout");
	assert_int_equal(store_open(NULL, KIB, NULL, &store), 0);
	store_close(store);
	assert_true(there(&s, "home/.cache/stakeout"));
	if (geteuid() == 0) { /* sudo with the HOME of who called it, where root has been before */
		scratch_run(&s, "mkdir -p -m 700 theirs/.cache/stakeout && chown 65534 theirs");
		assert_default(&s, NULL, theirs, "");
		assert_default(&s, theirs, home, "");
		assert_int_equal(store_open(NULL, KIB, NULL, &store), -EPERM);
	}
	scratch_deinit(&s);
}

/* The limit */

static void test_least_recently_used_goes_first(void **state)
{
	struct scratch s;
	struct store *store;

	scratch_init(&s);
	store = open_store(&s, 4 * KIB);
	assert_int_equal(put_size(store, "aa", KIB), 0);
	assert_int_equal(put_size(store, "bb", KIB), 0);
	assert_int_equal(put_size(store, "cc", KIB), 0);
	age(&s, "aa.sym", 3000000);
	age(&s, "bb.sym", 2000000);
	age(&s, "cc.sym", 1000000);
	assert_true(has(store, "aa")); /* is the last used one now */
	assert_int_equal(put_size(store, "dd", KIB), 0);
	assert_true(has(store, "aa") && !there(&s, "cache/bb.sym") && there(&s, "cache/cc.sym") && has(store, "dd"));
	assert_int_equal(put_size(store, "ee", KIB + 400), 0);
	assert_false(there(&s, "cache/cc.sym"));
	assert_true(has(store, "ee"));

	/* The new one stays, whatever its time: here of a clock that was ahead before. */
	age(&s, "aa.sym", -1000);
	age(&s, "dd.sym", -1000);
	age(&s, "ee.sym", -1000);
	assert_int_equal(put_size(store, "ff", 4 * KIB - STORE_ENVELOPE), 0);
	assert_true(has(store, "ff"));
	scratch_run(&s, "test $(ls -A cache) = ff.sym");

	assert_int_equal(put_size(store, "aa", 4 * KIB - STORE_ENVELOPE + 1), -EFBIG);
	assert_int_equal(put_size(store, "ff", 8 * KIB), -EFBIG);
	assert_true(has(store, "ff") && !has(store, "aa"));
	store_close(store);
	scratch_deinit(&s);
}

static time_t used_at(const struct scratch *s, const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/cache/%s", s->dir, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_mtime;
}

static void test_use_is_noted_seldom(void **state)
{
	struct scratch s;
	struct store *store;
	time_t before, now = time(NULL);

	scratch_init(&s);
	store = open_store(&s, STORE_DEFAULT_LIMIT);
	assert_int_equal(put(store, "ab", "x", 1), 0);
	age(&s, "ab.sym", 600);
	before = used_at(&s, "ab.sym");
	assert_true(has(store, "ab"));
	assert_int_equal(used_at(&s, "ab.sym"), before);
	age(&s, "ab.sym", 24 * 3600);
	assert_true(has(store, "ab"));
	assert_true(used_at(&s, "ab.sym") >= now);
	age(&s, "ab.sym", -24 * 3600);
	before = used_at(&s, "ab.sym");
	assert_true(has(store, "ab"));
	assert_true(used_at(&s, "ab.sym") < before);
	store_close(store);
	scratch_deinit(&s);
}

/* Half-written files of killed runs, and what others put into the directory. */
static void test_other_files(void **state)
{
	struct store_cleared cleared;
	struct store_files files;
	struct scratch s;
	struct store *store;

	scratch_init(&s);
	store = open_store(&s, 4 * KIB);
	assert_int_equal(store_list(store, NULL, &files), 0);
	assert_true(files.len == 0 && files.bytes == 0);
	assert_int_equal(put_size(store, "aa", KIB), 0);
	scratch_run(&s, "cd cache && cp aa.sym .tmp-0123456789abcdef && cp aa.sym .tmp-0000000000000000 && "
			"touch .tmp-1111111111111111 && cp aa.sym .tmp-short && head -c 3000 /dev/zero > bb.sym && "
			"touch cc.sym && cp aa.sym ../outside && ln -s ../outside dd.sym && cp aa.sym notes.txt && "
			"cp aa.sym ABCD.sym && mkdir ee.sym");
	age(&s, ".tmp-0123456789abcdef", 7200);
	age(&s, ".tmp-1111111111111111", 7200);
	age(&s, ".tmp-short", 7200);
	age(&s, "bb.sym", 7200);
	age(&s, "aa.sym", 600);
	assert_int_equal(put_size(store, "ff", KIB), 0);
	assert_false(there(&s, "cache/.tmp-0123456789abcdef") || there(&s, "cache/.tmp-1111111111111111"));
	assert_true(there(&s, "cache/.tmp-0000000000000000") && there(&s, "cache/.tmp-short"));
	assert_true(there(&s, "cache/bb.sym") && has(store, "aa") && has(store, "ff"));

	scratch_run(&s, "truncate -s -1 cache/aa.sym");
	age(&s, "aa.sym", 600);
	age(&s, "cc.sym", 1200);
	assert_int_equal(store_list(store, NULL, &files), 0);
	assert_int_equal(files.len, 3);
	assert_string_equal(files.data[0].key, "ff");
	assert_string_equal(files.data[1].key, "aa");
	assert_string_equal(files.data[2].key, "cc");
	assert_true(!files.data[0].damaged && files.data[1].damaged && files.data[2].damaged);
	assert_int_equal(files.data[0].size, KIB + STORE_ENVELOPE);
	assert_int_equal(files.data[2].used, used_at(&s, "cc.sym"));
	assert_int_equal(files.bytes, 2 * (KIB + STORE_ENVELOPE) - 1);
	vec_deinit(&files);

	assert_int_equal(store_clear(store, NULL, &cleared), 0);
	assert_int_equal(cleared.files, 4); /* and the temporary one */
	assert_int_equal(cleared.bytes, 3 * (KIB + STORE_ENVELOPE) - 1);
	assert_int_equal(cleared.failed, 0);
	scratch_run(&s, "test \"$(LC_ALL=C ls -A cache | tr '\\n' ' ')\" = "
			"'.tmp-short ABCD.sym bb.sym dd.sym ee.sym notes.txt ' && test -s outside");
	store_close(store);
	scratch_deinit(&s);
}

/* Failures */

static void test_file_size_limit(void **state)
{
	const struct rlimit small = {.rlim_cur = 64 * KIB, .rlim_max = RLIM_INFINITY};
	struct rlimit before;
	struct scratch s;
	struct store *store;
	int rc;

	scratch_init(&s);
	store = open_store(&s, STORE_DEFAULT_LIMIT);
	getrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){small.rlim_cur, before.rlim_max}), 0);
	rc = put_size(store, key, 64 * KIB); /* would raise SIGXFSZ */
	assert_int_equal(put_size(store, "ab", 32 * KIB), 0);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(rc, -EFBIG);
	assert_false(has(store, key));
	store_close(store);
	scratch_deinit(&s);
}

/* Exit code of a child that fills a small file system of its own: 0, 1 when wrong, 77 when it may not mount. */
static int fill_disk(const struct scratch *s)
{
	char path[256];
	struct store_cleared cleared;
	struct store *store;
	struct err err = {0};

	snprintf(path, sizeof(path), "%s/disk", s->dir);
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("disk", path, "tmpfs", 0, "size=256k,mode=0700") < 0)
		return 77;
	if (store_open(path, STORE_DEFAULT_LIMIT, NULL, &store) < 0 || put(store, "ab", "small", 5) < 0)
		return 1;
	if (put_size(store, "ab", 1024 * KIB) != -ENOSPC || !has(store, "ab"))
		return 1;
	snprintf(path, sizeof(path), "test \"$(ls -A %s/disk)\" = ab.sym", s->dir); /* nothing half written stays */
	if (system(path) != 0 || put_size(store, "cd", 16 * KIB) < 0)
		return 1;
	snprintf(path, sizeof(path), "%s/disk", s->dir);
	if (mount(NULL, path, NULL, MS_REMOUNT | MS_RDONLY, NULL) < 0)
		return 77;
	if (put(store, "ef", "x", 1) != -EROFS || !has(store, "cd"))
		return 1;
	if (store_clear(store, &err, &cleared) != 0 || cleared.files != 0 || cleared.failed != 2 || !err.msg[0])
		return 1;
	store_close(store);
	return 0;
}

static void test_full_and_read_only_disk(void **state)
{
	struct scratch s;
	int status;
	pid_t pid;

	scratch_init(&s);
	scratch_run(&s, "mkdir disk");
	pid = fork();
	if (pid == 0)
		_exit(fill_disk(&s));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	scratch_deinit(&s);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("skipped: file systems cannot be mounted here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* Many at once */

enum { PROCESSES = 6, ROUNDS = 400, KEYS = 8, WORDS_MAX = 8 * KIB };

/* A payload of n words that only its own writer can have made: every word is n and the writer. */
static int put_words(const struct store *store, const char *k, uint32_t n, uint32_t writer)
{
	uint64_t *words = malloc(n * sizeof(*words));
	uint64_t word = (uint64_t)n << 32 | writer;
	struct iovec parts[2] = {
		{.iov_base = words, .iov_len = n / 2 * sizeof(*words)},
		{.iov_base = words + n / 2, .iov_len = (n - n / 2) * sizeof(*words)},
	};
	int rc;

	for (uint32_t i = 0; i < n; i++)
		words[i] = word;
	rc = store_put(store, k, VERSION, parts, 2, NULL);
	free(words);
	return rc;
}

static bool is_whole(const struct store_entry *entry)
{
	const uint64_t *words = entry->data;

	if (entry->len < sizeof(*words) || words[0] >> 32 != entry->len / sizeof(*words))
		return false;
	for (size_t i = 1; i < entry->len / sizeof(*words); i++)
		if (words[i] != words[0])
			return false;
	return true;
}

/* 0, or which thing was not as it should be. */
static int put_and_get(const char *path, uint64_t limit, uint32_t writer)
{
	uint32_t random = writer * 2654435761u + 1;
	unsigned hits = 0;
	struct store *store;

	if (store_open(path, limit, NULL, &store) < 0) /* all of them create it at once */
		return 1;
	for (int i = 0; i < ROUNDS; i++) {
		struct store_entry entry;
		char k[8];
		int rc;

		random = random * 1664525 + 1013904223;
		snprintf(k, sizeof(k), "%02x", (random >> 8) % KEYS);
		if ((random >> 16) % 3 == 0 && put_words(store, k, 1 + (random >> 18) % WORDS_MAX, writer) != 0)
			return 2;
		rc = store_get(store, k, VERSION, &entry);
		if (rc != 0 && rc != -ENOENT)
			return 3;
		if (rc == 0 && !is_whole(&entry))
			return 4;
		hits += rc == 0;
		store_release(&entry);
	}
	store_close(store);
	return hits ? 0 : 5;
}

static void test_many_processes(void **state)
{
	const uint64_t limit = 3 * WORDS_MAX * sizeof(uint64_t); /* less than all keys need: files come and go */
	struct store_files files;
	struct scratch s;
	struct store *store;
	pid_t pids[PROCESSES];
	char path[256];
	int status[PROCESSES];

	scratch_init(&s);
	snprintf(path, sizeof(path), "%s/new/cache", s.dir);
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(put_and_get(path, limit, (uint32_t)i));
		}
	}
	for (int i = 0; i < PROCESSES; i++)
		assert_int_equal(waitpid(pids[i], &status[i], 0), pids[i]);
	for (int i = 0; i < PROCESSES; i++)
		assert_int_equal(status[i], 0);
	assert_int_equal(store_open_existing(path, limit, NULL, &store), 0);
	assert_int_equal(store_list(store, NULL, &files), 0);
	assert_true(files.len > 0 && files.bytes <= limit);
	vec_deinit(&files);
	scratch_run(&s, "! ls -A new/cache | grep -v '^0[0-7].sym$'");
	store_close(store);
	scratch_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_put_is_got),   cmocka_unit_test(test_keys),
		cmocka_unit_test(test_damaged_files),        cmocka_unit_test(test_foreign_byte_order),
		cmocka_unit_test(test_not_regular_files),    cmocka_unit_test(test_directory_is_made),
		cmocka_unit_test(test_directory_is_refused), cmocka_unit_test(test_directory_of_another_user),
		cmocka_unit_test(test_default_path),         cmocka_unit_test(test_least_recently_used_goes_first),
		cmocka_unit_test(test_use_is_noted_seldom),  cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_file_size_limit),      cmocka_unit_test(test_full_and_read_only_disk),
		cmocka_unit_test(test_many_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
