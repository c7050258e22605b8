/* SPDX-License-Identifier: MIT */
#include "runtime/python/values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/python/dict.h"
#include "runtime/python/quotes.h"
#include "runtime/python/strings.h"
#include "runtime/python/types.h"

enum {
	MAX_DEPTH = 3,
	MAX_ELEMENTS = 4,
	MAX_DIGITS = 4, /* of 30 bits each: larger numbers are told by their size */
	MAX_TEXT = 60,  /* characters of a string, */
	MAX_BYTES = 30, /* and of bytes */
	DIGIT_BITS = 30,
	FIRST_WITH_TAGS = 12, /* ints have a word of sign and size since then */
	FIRST_WITH_TAGGED_SLOTS = 14,
	FIRST_WITH_TUPLE_HASH = 14, /* the items of a tuple come a word later */
	OBJECT_SIZE = 16,
	VALUE = 16, /* of a float, and the first of a complex number; the content of a cell */
	LONG_DIGITS = 24,
	LIST_ITEMS = 24,
	SET_USED = 24,
	BYTES_DATA = 32,
	BYTEARRAY_START = 40,
	RANGE_START = 16, /* and its end, and its step */
	DEQUE_BLOCK = 24,
	DEQUE_INDEX = 40, /* of its first element in that block */
	DEQUE_MAX = 64,
	BLOCK_ELEMENTS = 8,
	BLOCK_LEN = 64,
	BLOCK_NEXT = BLOCK_ELEMENTS + BLOCK_LEN * 8,
	ARRAY_ITEMS = 24,
	ARRAY_KIND = 40, /* a pointer to a letter */
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

static void put_quoted(struct line *line, const uint32_t *characters, size_t n, bool cut, bool narrow)
{
	char quote[] = {quotes_choose(characters, n), '\0'}, text[QUOTED_CHARACTER];

	put(line, quote);
	for (size_t i = 0; i < n; i++)
		put_bytes(line, text, quotes_put(text, characters[i], quote[0], narrow));
	put(line, cut ? "…" : "");
	put(line, quote);
}

static void put_str(struct line *line, uint64_t object)
{
	uint32_t characters[MAX_TEXT];
	uint64_t length;

	if (python_characters(line->layout, line->mem, object, characters, MAX_TEXT, &length))
		put_quoted(line, characters, length < MAX_TEXT ? (size_t)length : MAX_TEXT, length > MAX_TEXT, false);
	else
		put(line, "<str>");
}

static void put_data(struct line *line, uint64_t start, uint64_t size)
{
	uint8_t bytes[MAX_BYTES];
	uint32_t characters[MAX_BYTES];
	size_t n = size < MAX_BYTES ? (size_t)size : MAX_BYTES;

	if (n && !mem_read_exact(line->mem, start, bytes, n)) {
		put(line, "<bytes>");
		return;
	}
	for (size_t i = 0; i < n; i++)
		characters[i] = bytes[i];
	put(line, "b");
	put_quoted(line, characters, n, size > n, true);
}

static void put_bytes_object(struct line *line, uint64_t object)
{
	uint64_t size;

	if (read_u64(line->mem, object + OBJECT_SIZE, &size))
		put_data(line, object + BYTES_DATA, size);
}

static void put_bytearray(struct line *line, uint64_t object)
{
	uint64_t size, start;

	if (!read_u64(line->mem, object + OBJECT_SIZE, &size) || !read_u64(line->mem, object + BYTEARRAY_START, &start))
		return;
	put(line, "bytearray(");
	put_data(line, start, size);
	put(line, ")");
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

/* The fewest digits that give the same number, with an exponent where repr() has one; and with a point, if that is wanted. */
static void put_double(struct line *line, double value, bool sign, bool point)
{
	enum { LEAST_EXPONENT = -4, EXPONENTS = 16 };
	char text[40];
	const char *e;
	int digits, exponent;

	for (digits = 0; digits < 17; digits++) {
		snprintf(text, sizeof(text), "%.*e", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	if (isnan(value))
		snprintf(text, sizeof(text), "nan"); /* which has no sign here */
	e = strchr(text, 'e'); /* none in inf and nan */
	exponent = e ? (int)strtol(e + 1, NULL, 10) : EXPONENTS;
	if (exponent >= LEAST_EXPONENT && exponent < EXPONENTS)
		snprintf(text, sizeof(text), "%.*f", digits > exponent ? digits - exponent : point, value);
	if (sign && text[0] != '-')
		put(line, "+");
	put(line, text);
}

static void put_float(struct line *line, uint64_t object)
{
	double value;

	if (mem_read_exact(line->mem, object + VALUE, &value, sizeof(value)))
		put_double(line, value, false, true);
}

static void put_complex(struct line *line, uint64_t object)
{
	double parts[2];
	bool is_imaginary;

	if (!mem_read_exact(line->mem, object + VALUE, parts, sizeof(parts)))
		return;
	is_imaginary = parts[0] == 0 && !signbit(parts[0]);
	put(line, is_imaginary ? "" : "(");
	if (!is_imaginary)
		put_double(line, parts[0], false, false);
	put_double(line, parts[1], !is_imaginary, false);
	put(line, is_imaginary ? "j" : "j)");
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

static bool put_member(void *ctx, uint64_t member)
{
	struct line *line = ctx;

	if (!begin_element(line))
		return false;
	put_object(line, member);
	return true;
}

static void put_members(struct line *line, uint64_t object, const char *empty, const char *open, const char *close)
{
	unsigned shown = line->shown;
	uint64_t used = 0;

	read_u64(line->mem, object + SET_USED, &used);
	put(line, used ? open : empty);
	line->shown = 0;
	if (used) {
		python_set_visit(line->mem, object, put_member, line);
		put(line, close);
	}
	put_length(line, used);
	line->shown = shown;
}

static void put_set(struct line *line, uint64_t object)
{
	put_members(line, object, "set()", "{", "}");
}

static void put_frozenset(struct line *line, uint64_t object)
{
	put_members(line, object, "frozenset()", "frozenset({", "})");
}

static void put_range(struct line *line, uint64_t object)
{
	uint64_t parts[3], step;

	if (!mem_read_exact(line->mem, object + RANGE_START, parts, sizeof(parts)))
		return;
	put(line, "range(");
	put_object(line, parts[0]);
	put(line, ", ");
	put_object(line, parts[1]);
	if (!python_int(line->layout, line->mem, parts[2], &step) || step != 1) {
		put(line, ", ");
		put_object(line, parts[2]);
	}
	put(line, ")");
}

/* Blocks of 64 elements, of which the first begins somewhere in the middle. */
static void put_deque(struct line *line, uint64_t object)
{
	uint64_t len, block, index, max, item;
	unsigned shown = line->shown;

	if (!read_u64(line->mem, object + OBJECT_SIZE, &len) || !read_u64(line->mem, object + DEQUE_BLOCK, &block) ||
	    !read_u64(line->mem, object + DEQUE_INDEX, &index) || !read_u64(line->mem, object + DEQUE_MAX, &max))
		return;
	put(line, "deque([");
	line->shown = 0;
	for (uint64_t i = 0; i < len && begin_element(line); i++, index++) {
		if (index >= BLOCK_LEN) {
			index = 0;
			if (!read_u64(line->mem, block + BLOCK_NEXT, &block))
				break;
		}
		if (!read_u64(line->mem, block + BLOCK_ELEMENTS + index * 8, &item))
			break;
		put_object(line, item);
	}
	put(line, "]");
	if (max <= INT64_MAX) {
		put(line, ", maxlen=");
		put_number(line, max, false);
	}
	put(line, ")");
	put_length(line, len);
	line->shown = shown;
}

static const struct array_kind {
	char letter;
	uint8_t size;
	bool is_signed;
	bool is_float;
} array_kinds[] = {
	{'b', 1, true, false}, {'B', 1, false, false}, {'h', 2, true, false}, {'H', 2, false, false}, {'i', 4, true, false},
	{'I', 4, false, false}, {'l', 8, true, false}, {'L', 8, false, false}, {'q', 8, true, false}, {'Q', 8, false, false},
	{'f', 4, true, true},  {'d', 8, true, true},
};

/* False: it cannot be read. */
static bool put_array_item(struct line *line, const struct array_kind *kind, uint64_t address)
{
	unsigned unused = 64 - kind->size * 8u;
	uint64_t word = 0;
	int64_t number;
	float single;
	double value;

	if (!mem_read_exact(line->mem, address, &word, kind->size))
		return false;
	number = kind->is_signed ? (int64_t)(word << unused) >> unused : 0;
	if (kind->is_float) {
		memcpy(&single, &word, sizeof(single));
		memcpy(&value, &word, sizeof(value));
		put_double(line, kind->size == sizeof(single) ? (double)single : value, false, true);
	} else if (number < 0) {
		put_number(line, -(unsigned __int128)number, true);
	} else {
		put_number(line, word, false);
	}
	return true;
}

static void put_array(struct line *line, uint64_t object)
{
	uint64_t len, items, description;
	const struct array_kind *kind = NULL;
	unsigned shown = line->shown;
	char letter[] = "?";

	if (!read_u64(line->mem, object + OBJECT_SIZE, &len) || !read_u64(line->mem, object + ARRAY_ITEMS, &items) ||
	    !read_u64(line->mem, object + ARRAY_KIND, &description) || !mem_read_exact(line->mem, description, letter, 1))
		return;
	for (size_t i = 0; i < sizeof(array_kinds) / sizeof(array_kinds[0]); i++)
		if (array_kinds[i].letter == letter[0])
			kind = &array_kinds[i];
	if (!kind) {
		put(line, "<array.array>");
		return;
	}
	put(line, "array('");
	put(line, letter);
	put(line, len ? "', [" : "'");
	line->shown = 0;
	for (uint64_t i = 0; i < len && begin_element(line) && put_array_item(line, kind, items + i * kind->size); i++)
		;
	put(line, len ? "])" : ")");
	put_length(line, len);
	line->shown = shown;
}

static void put_none(struct line *line, uint64_t object)
{
	put(line, "None");
}

static void put_ellipsis(struct line *line, uint64_t object)
{
	put(line, "Ellipsis");
}

static void put_not_implemented(struct line *line, uint64_t object)
{
	put(line, "NotImplemented");
}

struct kind {
	const char *type;
	void (*put)(struct line *line, uint64_t object);
	bool container;
};

/* By the name that the type itself has, if that is not of the program. */
static const struct kind kinds[] = {
	{"NoneType", put_none, false}, {"bool", put_bool, false},          {"int", put_int, false},
	{"float", put_float, false},   {"str", put_str, false},            {"bytes", put_bytes_object, false},
	{"list", put_list, true},      {"tuple", put_tuple, true},         {"dict", put_dict, true},
	{"set", put_set, true},        {"frozenset", put_frozenset, true}, {"range", put_range, true},
	{"complex", put_complex, false}, {"bytearray", put_bytearray, false}, {"ellipsis", put_ellipsis, false},
	{"NotImplementedType", put_not_implemented, false},
};

/* Of modules of the library, which are made at run time in some versions. No class statement gives such a name. */
static const struct kind of_library[] = {
	{"collections.deque", put_deque, true},
	{"array.array", put_array, false},
};

/* By a flag that all classes have which are such, of the program, too: tp_flags, bits 24 to 29. */
static const struct kind bases[] = {
	{"int", put_int, false},    {"list", put_list, true}, {"tuple", put_tuple, true},
	{"bytes", put_bytes_object, false}, {"str", put_str, false},  {"dict", put_dict, true},
};

static const struct kind *find_kind(const struct kind *from, size_t n, const char *type)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(from[i].type, type) == 0)
			return &from[i];
	return NULL;
}

static const struct kind *find_base(const struct python_type *type)
{
	enum { FIRST_FLAG = 24 };

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++)
		if (type->flags >> (FIRST_FLAG + i) & 1)
			return &bases[i];
	return NULL;
}

static void put_as(struct line *line, const struct kind *kind, uint64_t object)
{
	line->depth += kind->container;
	kind->put(line, object);
	line->depth -= kind->container;
}

static void put_object(struct line *line, uint64_t object)
{
	const struct kind *kind, *base;
	struct python_type type;
	const char *dot;

	if (line->full)
		return;
	if (!python_type_read(line->mem, object, &type)) {
		put(line, "<unreadable>");
		return;
	}
	kind = type.of_program ? NULL : find_kind(kinds, sizeof(kinds) / sizeof(kinds[0]), type.name);
	if (!kind)
		kind = find_kind(of_library, sizeof(of_library) / sizeof(of_library[0]), type.name);
	base = kind ? NULL : find_base(&type);
	if (kind && (!kind->container || line->depth < MAX_DEPTH)) {
		put_as(line, kind, object);
		return;
	}
	if (base && (!base->container || line->depth < MAX_DEPTH)) { /* Counter({'a': 2}) */
		dot = strrchr(type.name, '.');
		put(line, dot ? dot + 1 : type.name);
		put(line, "(");
		put_as(line, base, object);
		put(line, ")");
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
