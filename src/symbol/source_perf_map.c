/* SPDX-License-Identifier: MIT */
#include "symbol/source_perf_map.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/intervals.h"

enum {
	CHUNK = 1 << 20,
	MAX_BYTES = 1 << 30,
	MAX_LINES = 4 << 20,
	MAX_LINE = 4096, /* longer names are cut */
};

struct perf_map_source {
	int fd;
	VEC(uint64_t) lines;  /* their offsets in the file */
	struct pieces pieces; /* the id is the position in `lines` */
	struct arena *arena;  /* names that were asked for */
	char line[MAX_LINE];
};

static void destroy(void *ptr)
{
	struct perf_map_source *source = ptr;

	if (!source)
		return;
	if (source->fd >= 0)
		close(source->fd);
	vec_deinit(&source->lines);
	vec_deinit(&source->pieces);
	arena_destroy(source->arena);
	free(source);
}

DEFINE_CLEANUP(source, struct perf_map_source *, destroy)

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads a number and the blanks after it, at least one. NULL when they are not there. */
static const char *parse_hex(const char *p, const char *end, uint64_t *out)
{
	const char *first;
	int digit;

	*out = 0;
	if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
		p += 2;
	for (first = p; p < end && (digit = hex_digit(*p)) >= 0; p++)
		*out = *out << 4 | (uint64_t)digit;
	if (p == first || p - first > 16 || p == end || *p != ' ')
		return NULL;
	while (p < end && *p == ' ')
		p++;
	return p;
}

/* "START SIZE name with spaces". The name, or NULL when the line is different. */
static const char *parse_line(const char *p, const char *end, uint64_t *start, uint64_t *size)
{
	p = parse_hex(p, end, start);
	if (p)
		p = parse_hex(p, end, size);
	return p && p < end ? p : NULL;
}

/* While the file is read. */
struct reading {
	struct perf_map_source *source;
	struct intervals intervals;
};

static void cleanup_reading(struct reading *r)
{
	vec_deinit(&r->intervals);
}

static bool add_line(struct reading *r, const char *line, const char *end, uint64_t offset)
{
	uint32_t id = (uint32_t)r->source->lines.len;
	uint64_t start, size;

	if (!parse_line(line, end, &start, &size) || size > UINT64_MAX - start)
		return true;
	return intervals_add(&r->intervals, start, start + size, id, id) && vec_push(&r->source->lines, offset);
}

/* Takes the complete lines of buf[0…len), which is at `offset` of the file. Returns how many bytes that was, or -1. */
static ssize_t add_lines(struct reading *r, const char *buf, size_t len, uint64_t offset)
{
	const char *p = buf, *nl;

	while (r->source->lines.len < MAX_LINES && (nl = memchr(p, '\n', len - (size_t)(p - buf)))) {
		if (!add_line(r, p, nl, offset + (uint64_t)(p - buf)))
			return -1;
		p = nl + 1;
	}
	return p - buf;
}

/*
 * Takes what it can of the buffer and returns how many bytes that was, or -1. A line longer than the buffer is not a
 * valid one: it is dropped piece by piece, and *skip says that the buffer starts in its middle.
 */
static ssize_t take(struct reading *r, const char *buf, size_t len, uint64_t offset, bool *skip)
{
	const char *nl = *skip ? memchr(buf, '\n', len) : NULL;
	size_t start = nl ? (size_t)(nl + 1 - buf) : 0;
	ssize_t used;

	if (*skip && !nl)
		return (ssize_t)len;
	*skip = false;
	used = add_lines(r, buf + start, len - start, offset + start);
	if (used < 0)
		return -1;
	*skip = start == 0 && used == 0 && len == CHUNK;
	return *skip ? (ssize_t)len : (ssize_t)start + used;
}

/* An unterminated last line is left out: it may still be being written. */
static int read_lines(struct reading *r, char *buf, struct err *err)
{
	uint64_t offset = 0;
	size_t len = 0;
	bool skip = false;

	while (r->source->lines.len < MAX_LINES && offset < MAX_BYTES) {
		ssize_t got = pread(r->source->fd, buf + len, CHUNK - len, (off_t)(offset + len));
		ssize_t used;

		if (got < 0)
			return err_set(err, errno, "%s", strerror(errno));
		if (got == 0)
			return 0;
		len += (size_t)got;
		used = take(r, buf, len, offset, &skip);
		if (used < 0)
			return err_set(err, ENOMEM, "out of memory");
		len -= (size_t)used;
		memmove(buf, buf + used, len);
		offset += (uint64_t)used;
	}
	return err_set(err, E2BIG, "only its first %d lines, and no more than %d MiB, are used", MAX_LINES,
		       MAX_BYTES >> 20);
}

int perf_map_source_create(int fd, struct err *err, struct perf_map_source **out)
{
	_cleanup_(cleanup_source) struct perf_map_source *source = calloc(1, sizeof(*source));
	_cleanup_(cleanup_reading) struct reading r = {.source = source};
	_cleanup_free_ char *buf = malloc(CHUNK);
	int ret;

	if (!source)
		close(fd);
	else
		source->fd = fd;
	if (!source || !buf || !(source->arena = arena_create()))
		return err_set(err, ENOMEM, "out of memory");
	ret = read_lines(&r, buf, err);
	if (ret < 0 && ret != -E2BIG)
		return ret;
	if (!intervals_flatten(&r.intervals, &source->pieces))
		return err_set(err, ENOMEM, "out of memory");
	*out = steal_ptr(source);
	return 0;
}

/* The line is read again: if the file has been replaced meanwhile, it no longer matches. */
static bool find(void *ptr, uint64_t address, struct calls *out)
{
	struct perf_map_source *source = ptr;
	uint32_t id = pieces_find(&source->pieces, address);
	uint64_t start = 0, size = 0;
	const char *name, *nl;
	ssize_t got;

	out->len = 0;
	if (id == PIECE_NONE)
		return false;
	got = pread(source->fd, source->line, sizeof(source->line), (off_t)source->lines.data[id]);
	if (got <= 0)
		return false;
	nl = memchr(source->line, '\n', (size_t)got);
	if (!nl)
		nl = source->line + got;
	name = parse_line(source->line, nl, &start, &size);
	if (!name || address < start || address - start >= size)
		return false;
	name = arena_intern_n(source->arena, name, (size_t)(nl - name));
	return name && vec_push(out, (struct call){
					     .linkage = name,
					     .linkage_len = strlen(name),
					     .source = SYMBOL_PERF_MAP,
					     .has_start = true,
					     .start = start,
				     });
}

const struct source_ops perf_map_source_ops = {.find = find, .destroy = destroy};
