/* SPDX-License-Identifier: MIT */
#include "runtime/python/lines.h"

#include "base/cursor.h"

enum {
	NO_LINE = -128, /* 3.10 */
	/* 3.11: what a location begins with */
	LOCATION_START = 0x80,
	CODE_ONE_LINE_0 = 10,
	CODE_ONE_LINE_2 = 12,
	CODE_NO_COLUMNS = 13,
	CODE_LONG = 14,
	CODE_NONE = 15,
};

/* Lines are ints there; a damaged table may say anything. */
static uint32_t as_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Pairs of how many bytes and lines further the next one is. */
static uint32_t find_in_lnotab(struct cursor c, int64_t line, int64_t offset)
{
	int64_t at = 0;

	while (cursor_left(&c) >= 2) {
		at += cursor_u8(&c);
		if (at > offset)
			break;
		line += (int8_t)cursor_u8(&c);
	}
	return as_line(line);
}

/* Pairs of how many bytes long a range is and how many lines after the one before, or that it has none. */
static uint32_t find_in_ranges(struct cursor c, int64_t line, int64_t offset)
{
	int64_t end = 0;

	while (cursor_left(&c) >= 2) {
		int64_t start = end;
		int8_t lines;

		end += cursor_u8(&c);
		lines = (int8_t)cursor_u8(&c);
		if (lines != NO_LINE)
			line += lines;
		if (offset >= start && offset < end)
			return lines == NO_LINE ? 0 : as_line(line);
	}
	return 0;
}

/* Six bits a byte, the lowest first; bit 6 says that more follow. */
static uint64_t read_varint(struct cursor *c)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = cursor_u8(c);
		if (shift < 60)
			value |= (uint64_t)(byte & 0x3f) << shift;
		shift += 6;
	} while ((byte & 0x40) && !c->bad);
	return value;
}

static int64_t read_signed(struct cursor *c)
{
	uint64_t value = read_varint(c);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static int64_t read_line_delta(struct cursor *c, unsigned code)
{
	if (code == CODE_LONG || code == CODE_NO_COLUMNS)
		return read_signed(c);
	return code >= CODE_ONE_LINE_0 && code <= CODE_ONE_LINE_2 ? (int64_t)code - CODE_ONE_LINE_0 : 0;
}

static uint32_t find_in_locations(struct cursor c, int64_t line, int64_t offset)
{
	int64_t end = 0;

	while (cursor_left(&c)) {
		uint8_t first = cursor_u8(&c);
		unsigned code = first >> 3 & 15;

		if (!(first & LOCATION_START))
			return 0;
		end += ((first & 7) + 1) * 2;
		line += read_line_delta(&c, code);
		if (c.bad || line > INT32_MAX || line < -INT32_MAX)
			return 0;
		if (offset < end)
			return code == CODE_NONE ? 0 : as_line(line);
		while (cursor_left(&c) && !(*c.p & LOCATION_START)) /* the columns */
			cursor_u8(&c);
	}
	return 0;
}

uint32_t python_line(unsigned minor, const uint8_t *table, size_t len, uint32_t first_line, int64_t offset)
{
	struct cursor c = cursor_init(table, len);

	if (offset < 0)
		return first_line;
	if (minor < 10)
		return find_in_lnotab(c, first_line, offset);
	return minor == 10 ? find_in_ranges(c, first_line, offset) : find_in_locations(c, first_line, offset);
}
