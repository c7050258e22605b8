/* SPDX-License-Identifier: MIT */
#include "runtime/python/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/python/dict.h"
#include "runtime/python/strings.h"
#include "runtime/python/types.h"

enum {
	MAX_DEPTH = 3,
	MAX_ELEMENTS = 4,
	MAX_DIGITS = 4, /* of 30 bits each: larger numbers are told by their size */
	MAX_TEXT = 60,  /* bytes of a string */
	DIGIT_BITS = 30,
	FIRST_WITH_TAGS = 12, /* ints have a word of sign and size since then */
	FIRST_WITH_TAGGED_SLOTS = 14,
	FIRST_WITH_TUPLE_HASH = 14, /* the items of a tuple come a word later */
	OBJECT_SIZE = 16,
	VALUE = 16, /* of a float; the content of a cell */
	LONG_DIGITS = 24,
	LIST_ITEMS = 24,
	SET_USED = 24,
	BYTES_DATA = 32,
	SLOT_TAGS = 3,
	SLOT_INT = 3,
};

/* What is written so far. */
struct line {
	const struct python_layout *layout;
	struct mem *mem;
	struct arena *arena;
	char text[PYTHON_VALUE_WIDTH * 4];
	size_t len;
	unsigned depth;
	unsigned shown; /* elements of the container that is being written */
	bool full;
};

static void put_object(struct line *line, uint64_t object);

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

static void put_bytes(struct line *line, const char *text, size_t len)
{
	if (line->full)
		return;
	if (len > PYTHON_VALUE_WIDTH - line->len) {
		line->full = true;
		len = PYTHON_VALUE_WIDTH - line->len;
		while (len && ((uint8_t)text[len] & 0xc0) == 0x80) /* not in the middle of a character */
			len--;
	}
	memcpy(line->text + line->len, text, len);
	line->len += len;
}

static void put(struct line *line, const char *text)
{
	put_bytes(line, text, strlen(text));
}

static void put_quoted(struct line *line, const char *text, size_t len)
{
	bool cut = len > MAX_TEXT;

	if (cut) {
		len = MAX_TEXT;
		while (len && ((uint8_t)text[len] & 0xc0) == 0x80)
			len--;
	}
	put(line, "'");
	put_bytes(line, text, len);
	put(line, cut ? "…'" : "'");
}

static void put_str(struct line *line, uint64_t object)
{
	const char *text = python_string(line->layout, line->mem, object, line->arena);

	if (text)
		put_quoted(line, text, strlen(text));
	else
		put(line, "<str>");
}

static void put_bytes_object(struct line *line, uint64_t object)
{
	uint8_t bytes[MAX_TEXT / 2];
	char text[sizeof(bytes) * 4 + 1];
	size_t n = 0, len = 0;
	uint64_t size;

	if (read_u64(line->mem, object + OBJECT_SIZE, &size))
		n = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
	if (n && !mem_read_exact(line->mem, object + BYTES_DATA, bytes, n)) {
		put(line, "<bytes>");
		return;
	}
	for (size_t i = 0; i < n; i++)
		len += (size_t)sprintf(text + len, bytes[i] >= ' ' && bytes[i] < 0x7f && bytes[i] != '\\' ? "%c" : "\\x%02x", bytes[i]);
	put(line, "b'");
	put_bytes(line, text, len);
	put(line, size > n ? "…'" : "'");
}

static void put_number(struct line *line, unsigned __int128 value, bool negative)
{
	char digits[48];
	size_t at = sizeof(digits);

	digits[--at] = '\0';
	do {
		digits[--at] = (char)('0' + (unsigned)(value % 10));
		value /= 10;
	} while (value);
	if (negative)
		digits[--at] = '-';
	put(line, digits + at);
}

/* An int: how many digits it has, and if these are few, its value without the sign. */
static bool read_int(const struct python_layout *layout, struct mem *mem, uint64_t object, uint64_t *ndigits, bool *negative,
		     unsigned __int128 *value)
{
	uint32_t digits[MAX_DIGITS];
	uint64_t word, n;

	if (!read_u64(mem, object + OBJECT_SIZE, &word))
		return false;
	if (python_minor(layout) >= FIRST_WITH_TAGS) {
		n = word >> 3;
		*negative = (word & 3) == 2;
		if ((word & 3) == 1)
			n = 0;
	} else {
		*negative = (int64_t)word < 0;
		n = *negative ? -word : word;
	}
	*ndigits = n;
	*value = 0;
	if (n > MAX_DIGITS)
		return true;
	if (n && !mem_read_exact(mem, object + LONG_DIGITS, digits, n * sizeof(digits[0])))
		return false;
	for (uint64_t i = n; i > 0; i--)
		*value = *value << DIGIT_BITS | (digits[i - 1] & ((1u << DIGIT_BITS) - 1));
	return true;
}

static void put_int(struct line *line, uint64_t object)
{
	unsigned __int128 value;
	uint64_t n;
	bool negative;
	char text[48];

	if (!read_int(line->layout, line->mem, object, &n, &negative, &value)) {
		put(line, "<int>");
	} else if (n > MAX_DIGITS) {
		snprintf(text, sizeof(text), "<int of about %" PRIu64 " bits>", n * DIGIT_BITS);
		put(line, text);
	} else {
		put_number(line, value, negative);
	}
}

bool python_int(const struct python_layout *layout, struct mem *mem, uint64_t object, uint64_t *out)
{
	unsigned __int128 value;
	uint64_t n;
	bool negative;

	if (!python_is_a(mem, object, "int") || !read_int(layout, mem, object, &n, &negative, &value) || negative ||
	    n > MAX_DIGITS || value > UINT64_MAX)
		return false;
	*out = (uint64_t)value;
	return true;
}

static void put_bool(struct line *line, uint64_t object)
{
	uint32_t digit = 0;

	mem_read_exact(line->mem, object + LONG_DIGITS, &digit, sizeof(digit));
	put(line, digit == 1 ? "True" : "False");
}

/* The fewest digits that give the same number, with a point and with an exponent where repr() has one. */
static void put_float(struct line *line, uint64_t object)
{
	enum { LEAST_EXPONENT = -4, EXPONENTS = 16 };
	char text[40];
	const char *e;
	double value;
	int digits, exponent;

	if (!mem_read_exact(line->mem, object + VALUE, &value, sizeof(value)))
		return;
	for (digits = 0; digits < 17; digits++) {
		snprintf(text, sizeof(text), "%.*e", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	e = strchr(text, 'e'); /* none in inf and nan */
	exponent = e ? (int)strtol(e + 1, NULL, 10) : EXPONENTS;
	if (exponent >= LEAST_EXPONENT && exponent < EXPONENTS)
		snprintf(text, sizeof(text), "%.*f", digits > exponent ? digits - exponent : 1, value);
	put(line, text);
}

/* True when there is to be another element. */
static bool begin_element(struct line *line)
{
	if (line->shown)
		put(line, ", ");
	if (line->shown++ == MAX_ELEMENTS) {
		put(line, "…");
		return false;
	}
	return !line->full;
}

static void put_length(struct line *line, uint64_t len)
{
	char text[40];

	snprintf(text, sizeof(text), " (%" PRIu64 ")", len);
	if (len > MAX_ELEMENTS)
		put(line, text);
}

static void put_items(struct line *line, uint64_t items, uint64_t len, const char *open, const char *close)
{
	unsigned shown = line->shown;

	put(line, open);
	line->shown = 0;
	for (uint64_t i = 0; i < len && begin_element(line); i++) {
		uint64_t item;

		if (!read_u64(line->mem, items + i * 8, &item))
			break;
		put_object(line, item);
	}
	put(line, close);
	put_length(line, len);
	line->shown = shown;
}

static uint64_t tuple_start(const struct python_layout *layout)
{
	return python_minor(layout) >= FIRST_WITH_TUPLE_HASH ? 32 : 24;
}

static void put_tuple(struct line *line, uint64_t object)
{
	uint64_t len;

	if (read_u64(line->mem, object + OBJECT_SIZE, &len))
		put_items(line, object + tuple_start(line->layout), len, "(", len == 1 ? ",)" : ")");
}

static void put_list(struct line *line, uint64_t object)
{
	uint64_t len, items;

	if (read_u64(line->mem, object + OBJECT_SIZE, &len) && read_u64(line->mem, object + LIST_ITEMS, &items))
		put_items(line, items, len, "[", "]");
}

static bool put_pair(void *ctx, uint64_t key, uint64_t value)
{
	struct line *line = ctx;

	if (!begin_element(line))
		return false;
	put_object(line, key);
	put(line, ": ");
	put_object(line, value);
	return true;
}

static void put_dict(struct line *line, uint64_t object)
{
	unsigned shown = line->shown;
	uint64_t used = 0;

	read_u64(line->mem, object + OBJECT_SIZE, &used);
	put(line, "{");
	line->shown = 0;
	if (used)
		python_dict_visit(line->layout, line->mem, object, put_pair, line);
	put(line, "}");
	put_length(line, used);
	line->shown = shown;
}

static void put_set(struct line *line, uint64_t object)
{
	uint64_t used = 0;
	char text[40];

	read_u64(line->mem, object + SET_USED, &used);
	snprintf(text, sizeof(text), "<set> (%" PRIu64 ")", used);
	put(line, text);
}

static void put_none(struct line *line, uint64_t object)
{
	put(line, "None");
}

/* By the name that the type itself has, if that is not of the program. */
static const struct {
	const char *type;
	void (*put)(struct line *line, uint64_t object);
	bool container;
} kinds[] = {
	{"NoneType", put_none, false}, {"bool", put_bool, false},          {"int", put_int, false},
	{"float", put_float, false},   {"str", put_str, false},            {"bytes", put_bytes_object, false},
	{"list", put_list, true},      {"tuple", put_tuple, true},         {"dict", put_dict, true},
	{"set", put_set, false},
};

static void put_object(struct line *line, uint64_t object)
{
	struct python_type type;

	if (line->full)
		return;
	if (!python_type_read(line->mem, object, &type)) {
		put(line, "<unreadable>");
		return;
	}
	for (size_t i = 0; !type.of_program && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].type, type.name) == 0 && (!kinds[i].container || line->depth < MAX_DEPTH)) {
			line->depth += kinds[i].container;
			kinds[i].put(line, object);
			line->depth -= kinds[i].container;
			return;
		}
	put(line, "<");
	put(line, type.name);
	put(line, ">");
}

static const char *finish(struct line *line)
{
	if (line->full) {
		memcpy(line->text + line->len, "…", strlen("…"));
		line->len += strlen("…");
	}
	return arena_intern_n(line->arena, line->text, line->len);
}

const char *python_value(const struct python_layout *layout, struct mem *mem, uint64_t object, struct arena *arena)
{
	struct line line = {.layout = layout, .mem = mem, .arena = arena};

	put_object(&line, object);
	return finish(&line);
}

static uint64_t look_into_cell(struct line *line, uint64_t object)
{
	uint64_t content;

	if (!python_is_a(line->mem, object, "cell"))
		return object;
	return read_u64(line->mem, object + VALUE, &content) ? content : 0;
}

const char *python_slot_value(const struct python_layout *layout, struct mem *mem, uint64_t slot, struct arena *arena)
{
	struct line line = {.layout = layout, .mem = mem, .arena = arena};
	int64_t number = (int64_t)slot >> 2;

	if (python_minor(layout) >= FIRST_WITH_TAGGED_SLOTS) {
		if ((slot & SLOT_TAGS) == SLOT_INT) {
			put_number(&line, number < 0 ? -(unsigned __int128)number : (unsigned __int128)number, number < 0);
			return finish(&line);
		}
		slot &= ~(uint64_t)SLOT_TAGS;
	}
	slot = slot ? look_into_cell(&line, slot) : 0;
	if (!slot)
		return NULL;
	put_object(&line, slot);
	return finish(&line);
}

size_t python_tuple_items(const struct python_layout *layout, struct mem *mem, uint64_t tuple, uint64_t *items, size_t max)
{
	uint64_t len;

	if (!tuple || !read_u64(mem, tuple + OBJECT_SIZE, &len))
		return 0;
	if (len > max)
		len = max;
	return len && mem_read_exact(mem, tuple + tuple_start(layout), items, len * sizeof(*items)) ? (size_t)len : 0;
}
