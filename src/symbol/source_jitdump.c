/* SPDX-License-Identifier: MIT */
#include "symbol/source_jitdump.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/intervals.h"
#include "base/map.h"

enum {
	MAGIC = 0x4a695444,         /* "JiTD" */
	MAGIC_SWAPPED = 0x4454694a, /* written by a machine of the other byte order */
	HEADER = 40,
	PREFIX = 16,    /* of a record: id, size, timestamp */
	LOAD_SIZE = 40, /* of the fields before the name */
	MOVE_SIZE = 48,
	DEBUG_SIZE = 16,
	ALIGN = 8, /* records may be padded to it */

	MAX_NAME = 4096,
	MAX_DEBUG = 4 << 20, /* bytes of lines for one function */
	MAX_CODE = 1 << 30,  /* bytes of one function */
	MAX_CODES = 4 << 20,
	CHUNK = 256 << 10,

	/*
	 * perf turned each function into an ELF file, and counted the 64 bytes of its header as code when it assigned
	 * lines to addresses. V8 adds 64 to compensate.
	 */
	ELF_HEADER = 64,
};

/* Bytes of the file that are read: it contains the code too. */
#define MAX_BYTES (UINT64_C(2) << 30)

enum record_id {
	CODE_LOAD = 0,
	CODE_MOVE = 1,
	CODE_DEBUG_INFO = 2,
	CODE_CLOSE = 3,
};

struct code {
	uint64_t start;
	uint64_t made_at; /* its address when it was made, which its lines refer to */
	uint64_t name;    /* offset in the file; 0: the code that was here has moved away */
	uint64_t debug;   /* offset of its lines in the file; 0: none */
	uint32_t debug_len;
	uint32_t name_max; /* the record's bytes from the name on, at most MAX_NAME */
};

struct jitdump_source {
	int fd;
	bool big_endian;
	bool shifted; /* addresses of lines are too high by ELF_HEADER */
	VEC(struct code) codes;
	struct pieces pieces; /* the id is the position in `codes` */
	struct arena *arena;  /* strings that were asked for */

	/* A part of the file. */
	uint8_t *buf;
	size_t buf_cap;
	size_t buf_len;
	uint64_t buf_offset;
};

/* While the file is read. */
struct reading {
	struct jitdump_source *source;
	struct intervals intervals;
	struct u64map by_index; /* code_index to position in `codes`, plus 1 */
	uint64_t debug_for;     /* address of the code that the lines of the last record are for */
	uint64_t debug;         /* 0: none, or damaged */
	uint32_t debug_len;
	bool has_lines;
	bool has_low_lines; /* some line is for an address in the first ELF_HEADER bytes of its code */
};

static void cleanup_reading(struct reading *r)
{
	vec_deinit(&r->intervals);
	u64map_deinit(&r->by_index);
}

static void destroy(void *ptr)
{
	struct jitdump_source *source = ptr;

	if (!source)
		return;
	if (source->fd >= 0)
		close(source->fd);
	vec_deinit(&source->codes);
	vec_deinit(&source->pieces);
	arena_destroy(source->arena);
	free(source->buf);
	free(source);
}

DEFINE_CLEANUP(source, struct jitdump_source *, destroy)

/* The next `len` bytes at an offset of the file, or as many as there are; valid until the next call. */
static struct cursor bytes_at(struct jitdump_source *source, uint64_t offset, size_t len)
{
	uint64_t skip = offset - source->buf_offset;
	struct cursor c;

	if (offset < source->buf_offset || skip > source->buf_len || source->buf_len - skip < len) {
		ssize_t got;

		if (len > source->buf_cap) {
			uint8_t *grown = realloc(source->buf, len);

			if (!grown)
				return cursor_init(NULL, 0);
			source->buf = grown;
			source->buf_cap = len;
		}
		got = pread(source->fd, source->buf, source->buf_cap, (off_t)offset);
		source->buf_offset = offset;
		source->buf_len = got > 0 ? (size_t)got : 0;
		skip = 0;
	}
	c = cursor_init(source->buf + skip, source->buf_len - skip < len ? source->buf_len - skip : len);
	c.big_endian = source->big_endian;
	return c;
}

/* Lines */

struct line {
	uint64_t address;
	uint32_t line;
	uint32_t column;
	const char *file; /* NULL: the same as before */
};

static bool is_text(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

/* "\xff" stands for the name of the line before. */
static bool next_line(struct cursor *c, struct line *out)
{
	out->address = cursor_u64(c);
	out->line = cursor_u32(c);
	out->column = cursor_u32(c);
	out->file = cursor_cstr(c);
	if (!out->file || !is_text(out->file))
		return false;
	if (strcmp(out->file, "\xff") == 0)
		out->file = NULL;
	return true;
}

/*
 * V8 writes records with names from freed memory. Anything that is not exactly as it should be counts as damaged: no
 * lines are better than wrong ones.
 */
static void read_debug(struct reading *r, uint64_t offset, uint32_t len)
{
	struct cursor c = bytes_at(r->source, offset, len);
	uint64_t code = cursor_u64(&c);
	uint64_t count = cursor_u64(&c);
	bool low = false;
	struct line line;

	r->debug = 0;
	for (uint64_t i = 0; i < count; i++) {
		if (!next_line(&c, &line) || line.address - code > MAX_CODE || (i == 0 && !line.file))
			return;
		low |= line.address - code < ELF_HEADER;
	}
	if (c.bad || count == 0 || cursor_left(&c) >= ALIGN)
		return;
	r->has_lines = true;
	r->has_low_lines |= low;
	r->debug_for = code;
	r->debug = offset;
	r->debug_len = len;
}

/* Code */

static bool add_code(struct reading *r, const struct code *code, uint64_t size)
{
	uint32_t id = (uint32_t)r->source->codes.len;
	uint64_t end = size <= MAX_CODE && size <= UINT64_MAX - code->start ? code->start + size : 0;

	return intervals_add(&r->intervals, code->start, end, id, id) && vec_push(&r->source->codes, *code);
}

static bool remember_index(struct reading *r, uint64_t index)
{
	bool created;
	uint64_t *slot = u64map_put(&r->by_index, index, &created);

	if (slot)
		*slot = r->source->codes.len; /* of the code just added, plus 1 */
	return slot;
}

static bool read_load(struct reading *r, uint64_t offset, uint32_t len)
{
	struct cursor c = bytes_at(r->source, offset, LOAD_SIZE);
	struct code code = {.name = offset + LOAD_SIZE,
			    .name_max = len - LOAD_SIZE < MAX_NAME ? len - LOAD_SIZE : MAX_NAME};
	uint64_t size, index;

	cursor_skip(&c, 4 + 4 + 8); /* pid, tid, vma */
	code.start = code.made_at = cursor_u64(&c);
	size = cursor_u64(&c);
	index = cursor_u64(&c);
	if (c.bad)
		return true;
	if (r->debug && r->debug_for == code.start) {
		code.debug = r->debug;
		code.debug_len = r->debug_len;
	}
	r->debug = 0;
	return add_code(r, &code, size) && remember_index(r, index);
}

static bool read_move(struct reading *r, uint64_t offset)
{
	struct cursor c = bytes_at(r->source, offset, MOVE_SIZE);
	uint64_t from, to, size, index;
	const uint64_t *known;
	struct code code;

	cursor_skip(&c, 4 + 4 + 8); /* pid, tid, vma */
	from = cursor_u64(&c);
	to = cursor_u64(&c);
	size = cursor_u64(&c);
	index = cursor_u64(&c);
	known = c.bad ? NULL : u64map_find(&r->by_index, index);
	if (!known)
		return true;
	code = r->source->codes.data[*known - 1];
	code.start = to;
	/* Its old place is empty now, except where it overlaps the new one, which is added last. */
	return add_code(r, &(struct code){.start = from}, size) && add_code(r, &code, size) && remember_index(r, index);
}

static bool read_record(struct reading *r, uint32_t id, uint64_t offset, uint32_t len)
{
	switch (id) {
	case CODE_LOAD:
		return len <= LOAD_SIZE || read_load(r, offset, len);
	case CODE_MOVE:
		return len < MOVE_SIZE || read_move(r, offset);
	case CODE_DEBUG_INFO:
		if (len >= DEBUG_SIZE && len <= MAX_DEBUG)
			read_debug(r, offset, len);
		return true;
	default:
		return true;
	}
}

static int read_header(struct jitdump_source *source, struct err *err, uint64_t *size)
{
	struct cursor c = bytes_at(source, 0, HEADER);
	bool whole = cursor_left(&c) == HEADER;
	uint32_t magic = cursor_u32(&c);

	source->big_endian = c.big_endian = magic == MAGIC_SWAPPED;
	if (c.bad || (magic != MAGIC && magic != MAGIC_SWAPPED))
		return err_set(err, EINVAL, "it is not a jitdump file");
	cursor_skip(&c, 4); /* no version has changed the layout */
	*size = cursor_u32(&c);
	if (!whole || *size < HEADER)
		return err_set(err, EINVAL, "its header is damaged");
	return 0;
}

/* A negative errno only when memory is exhausted. */
static int read_records(struct reading *r, uint64_t offset, struct err *err)
{
	for (;;) {
		struct cursor c = bytes_at(r->source, offset, PREFIX);
		uint32_t id = cursor_u32(&c);
		uint32_t size = cursor_u32(&c);

		cursor_skip(&c, 8); /* the timestamp */
		if (c.bad || id == CODE_CLOSE)
			return 0;
		if (size < PREFIX) {
			err_set(err, EINVAL, "it is damaged at byte %" PRIu64 ": what follows is not used", offset);
			return 0;
		}
		if (r->source->codes.len >= MAX_CODES || offset > MAX_BYTES) {
			err_set(err, E2BIG, "only its first %" PRIu64 " MiB are used", offset >> 20);
			return 0;
		}
		if (!read_record(r, id, offset + PREFIX, size - PREFIX))
			return err_set(err, ENOMEM, "out of memory");
		offset += size;
	}
}

int jitdump_source_create(int fd, struct err *err, struct jitdump_source **out)
{
	_cleanup_(cleanup_source) struct jitdump_source *source = calloc(1, sizeof(*source));
	_cleanup_(cleanup_reading) struct reading r = {.source = source};
	uint64_t offset = 0;
	int ret;

	if (!source)
		close(fd);
	else
		source->fd = fd;
	if (!source || !(source->arena = arena_create()) || !(source->buf = malloc(CHUNK)))
		return err_set(err, ENOMEM, "out of memory");
	source->buf_cap = CHUNK;
	ret = read_header(source, err, &offset);
	if (ret == 0)
		ret = read_records(&r, offset, err);
	if (ret == 0 && !intervals_flatten(&r.intervals, &source->pieces))
		ret = err_set(err, ENOMEM, "out of memory");
	if (ret < 0)
		return ret;
	source->shifted = r.has_lines && !r.has_low_lines;
	*out = steal_ptr(source);
	return 0;
}

static const char *read_name(struct jitdump_source *source, const struct code *code)
{
	struct cursor c = bytes_at(source, code->name, code->name_max);
	const char *name = cursor_cstr(&c);

	return name && *name ? arena_intern(source->arena, name) : NULL;
}

/* V8's mark for code of its baseline compiler, whose lines have offsets into the byte code instead of addresses. */
static bool has_useless_lines(const char *name)
{
	return strncmp(name, "JS:^", 4) == 0;
}

/* The last line that starts at or before the address. */
static void find_line(struct jitdump_source *source, const struct code *code, uint64_t address, struct call *call)
{
	struct cursor c = bytes_at(source, code->debug, code->debug_len);
	uint64_t at = address - code->start + code->made_at + (source->shifted ? ELF_HEADER : 0);
	const char *file = NULL;
	uint64_t best = 0, count;
	struct line line;

	cursor_skip(&c, 8); /* the code's address */
	count = cursor_u64(&c);
	for (uint64_t i = 0; i < count && next_line(&c, &line); i++) {
		if (line.file)
			file = line.file;
		if (line.address > at || line.address < best)
			continue;
		best = line.address;
		call->file = file;
		call->line = line.line;
		call->column = line.column;
	}
	call->file = arena_intern(source->arena, call->file);
}

static bool find(void *ptr, uint64_t address, struct calls *out)
{
	struct jitdump_source *source = ptr;
	uint32_t id = pieces_find(&source->pieces, address);
	const struct code *code = id != PIECE_NONE ? &source->codes.data[id] : NULL;
	struct call call = {.source = SYMBOL_JITDUMP, .has_start = true};

	out->len = 0;
	if (!code || !code->name)
		return false;
	call.start = code->start;
	call.linkage = read_name(source, code);
	if (!call.linkage)
		return false;
	call.linkage_len = strlen(call.linkage);
	if (code->debug && !has_useless_lines(call.linkage))
		find_line(source, code, address, &call);
	return vec_push(out, call);
}

const struct source_ops jitdump_source_ops = {.find = find, .destroy = destroy};
