/* SPDX-License-Identifier: MIT */
#include "target/debugfile.h"

#include <errno.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "target/rootfile.h"

enum { MAX_BUILD_ID_HEX = 2 * 64 };

static const size_t max_crc_bytes = (size_t)4 << 30; /* what has to be read whole to be believed */

DEFINE_CLEANUP(image, struct image *, image_destroy)

/* How a candidate proves that it belongs to the file; a build-id, when both have one, decides alone. */
struct proof {
	const char *build_id; /* hex, or NULL */
	bool has_crc;
	uint32_t crc;
};

static uint32_t file_crc(const struct image *image)
{
	struct span bytes = image_raw(image);

	return bytes.len <= max_crc_bytes ? libdeflate_crc32(0, bytes.data, bytes.len) : 0;
}

static bool is_proven(struct image *candidate, const struct proof *proof)
{
	const char *id = image_build_id(candidate);

	if (proof->build_id && id)
		return strcmp(proof->build_id, id) == 0;
	return proof->has_crc && file_crc(candidate) == proof->crc;
}

/* Without proof the reader has to check. */
static int try_root(int root_fd, const char *path, const struct proof *proof, struct image **out)
{
	_cleanup_(cleanup_image) struct image *image = NULL;
	int ret = rootfile_open_image(root_fd, path, NULL, &image);

	if (ret < 0)
		return ret;
	if (proof && !is_proven(image, proof))
		return -ENOENT;
	image_set_path(image, path);
	*out = steal_ptr(image);
	return 0;
}

/* Whether the path leads to the same file below our own root. */
static bool is_ours(const struct image *image, const char *path)
{
	struct stat st;

	return rootfile_stat(-1, path, &st) == 0 && image_identity_of(&st) == image_identity(image);
}

/* The target's own copy first: it is the one that was installed together with the file. */
static int try_path(int root_fd, const char *path, const struct proof *proof, struct image **out)
{
	if (root_fd >= 0 && try_root(root_fd, path, proof, out) == 0) {
		if (!is_ours(*out, path))
			image_set_foreign(*out);
		return 0;
	}
	return try_root(-1, path, proof, out);
}

bool build_id_path(enum build_id_place place, const char *id, char out[static BUILD_ID_PATH])
{
	static const char *const formats[] = {
		[BUILD_ID_PROGRAM] = "/usr/lib/.build-id/%.2s/%s",
		[BUILD_ID_PROGRAM_DEBUG] = "/usr/lib/debug/.build-id/%.2s/%s",
		[BUILD_ID_DEBUG_FILE] = "/usr/lib/debug/.build-id/%.2s/%s.debug",
	};
	size_t digits = strspn(id, "0123456789abcdef");

	if (digits < 4 || digits > MAX_BUILD_ID_HEX || id[digits])
		return false;
	snprintf(out, BUILD_ID_PATH, formats[place], id, id + 2);
	return true;
}

static int try_build_id(int root_fd, const struct proof *proof, struct image **out)
{
	char path[BUILD_ID_PATH];

	if (!proof->build_id || !build_id_path(BUILD_ID_DEBUG_FILE, proof->build_id, path))
		return -ENOENT;
	return try_path(root_fd, path, proof, out);
}

/* .gnu_debuglink: a file name, padded to four bytes, and the CRC of that file. False when there is none. */
static bool read_debuglink(struct image *image, char name[static NAME_MAX + 1], uint32_t *crc)
{
	struct span section = image_section(image, ".gnu_debuglink");
	struct cursor c = cursor_init(section.data, section.len);

	c.big_endian = image_is_big_endian(image);
	cursor_string(&c, name, NAME_MAX + 1);
	cursor_seek(&c, (cursor_offset(&c) + 3) / 4 * 4);
	*crc = cursor_u32(&c);
	return !c.bad && *name && !strchr(name, '/');
}

static int try_debuglink(const struct debugfile_query *query, struct image **out)
{
	static const char *const places[] = {"%.*s/%s", "%.*s/.debug/%s", "/usr/lib/debug%.*s/%s"};
	struct proof proof = {.build_id = image_build_id(query->image), .has_crc = true};
	const char *slash = query->path && *query->path == '/' ? strrchr(query->path, '/') : NULL;
	char path[PATH_MAX], name[NAME_MAX + 1];

	if (!slash || !read_debuglink(query->image, name, &proof.crc))
		return -ENOENT;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int len = snprintf(path, sizeof(path), places[i], (int)(slash - query->path), query->path, name);

		/* A link that names the file itself would prove itself. */
		if (len < 0 || (size_t)len >= sizeof(path) || strcmp(path, query->path) == 0)
			continue;
		if (try_path(query->root_fd, path, &proof, out) == 0)
			return 0;
	}
	return -ENOENT;
}

int debugfile_find(const struct debugfile_query *query, struct err *err, struct image **out)
{
	struct proof proof = {.build_id = image_build_id(query->image)};

	if (try_build_id(query->root_fd, &proof, out) == 0 || try_debuglink(query, out) == 0)
		return 0;
	return err_set(err, ENOENT, "no separate debug file was found");
}

/* .gnu_debugaltlink: a file name and that file's build-id. False when there is none. */
static bool read_altlink(struct image *image, char name[static PATH_MAX], char build_id[static MAX_BUILD_ID_HEX + 1])
{
	struct span section = image_section(image, ".gnu_debugaltlink");
	struct cursor c = cursor_init(section.data, section.len);
	size_t len;

	if (!cursor_string(&c, name, PATH_MAX))
		return false;
	len = cursor_left(&c);
	if (len < 2 || len > MAX_BUILD_ID_HEX / 2)
		return false;
	for (size_t i = 0; i < len; i++)
		snprintf(build_id + 2 * i, 3, "%02x", cursor_u8(&c));
	return true;
}

int debugfile_open_alt(struct image *debug, const char *path, int root_fd, struct err *err, struct image **out)
{
	char build_id[MAX_BUILD_ID_HEX + 1];
	char whole[PATH_MAX], name[PATH_MAX];
	const struct proof proof = {.build_id = build_id};
	const char *from = image_path(debug) ? image_path(debug) : path;
	const char *slash = from ? strrchr(from, '/') : NULL;
	int dir_len = slash ? (int)(slash - from) : 0;
	int len;

	if (!read_altlink(debug, name, build_id))
		return err_set(err, ENOENT, "the file has no usable .gnu_debugaltlink");
	if (try_build_id(root_fd, &proof, out) == 0)
		return 0;
	if (*name == '/')
		len = snprintf(whole, sizeof(whole), "%s", name);
	else
		len = snprintf(whole, sizeof(whole), "%.*s/%s", dir_len, from ? from : "", name);
	if (len > 0 && (size_t)len < sizeof(whole) && try_path(root_fd, whole, &proof, out) == 0)
		return 0;
	return err_set(err, ENOENT, "the shared debug file %s (build-id %s) was not found", name, build_id);
}

static int try_format(int root_fd, struct image **out, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int try_format(int root_fd, struct image **out, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (len <= 0 || (size_t)len >= sizeof(path) || path[0] != '/')
		return -ENOENT;
	return try_path(root_fd, path, NULL, out);
}

int debugfile_open_dwo(const char *dir, const char *name, const char *path, int root_fd, struct image **out)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *base = strrchr(name, '/');
	int ret = -ENOENT;

	if (*name == '/')
		ret = try_format(root_fd, out, "%s", name);
	else if (dir && *dir == '/')
		ret = try_format(root_fd, out, "%s/%s", dir, name);
	if (ret < 0 && slash && *name != '/')
		ret = try_format(root_fd, out, "%.*s/%s", (int)(slash - path), path, name);
	if (ret < 0 && slash)
		ret = try_format(root_fd, out, "%.*s/%s", (int)(slash - path), path, base ? base + 1 : name);
	return ret;
}

int debugfile_open_dwp(const char *path, int root_fd, struct image **out)
{
	return try_format(root_fd, out, "%s.dwp", path);
}
