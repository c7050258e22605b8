/* SPDX-License-Identifier: MIT */
#include "report/wrap.h"

#include <stdbool.h>
#include <string.h>

enum { FURTHER_IN = 4 };

/* The length of a code for a colour; 0: there is none. */
static size_t code_length(const char *s)
{
	size_t n;

	if (s[0] != '\033' || s[1] != '[')
		return 0;
	n = 2 + strspn(s + 2, "0123456789;");
	return s[n] == 'm' ? n + 1 : 0;
}

static size_t count_columns(const char *from, const char *to)
{
	size_t columns = 0;

	while (from < to) {
		size_t code = code_length(from);

		columns += !code && ((unsigned char)*from & 0xc0) != 0x80;
		from += code ? code : 1;
	}
	return columns;
}

static const char *end_of_spaces(const char *s, const char *end)
{
	while (s < end && *s == ' ')
		s++;
	return s;
}

/* Whether what follows the space is what the number before it is of: "12 ms" is one word. */
static bool is_unit(const char *space, const char *end)
{
	static const char *const units[] = {"ns", "µs", "ms", "s", "min", "%"};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		const size_t len = strlen(units[i]);

		if ((size_t)(end - space) > len && strncmp(space + 1, units[i], len) == 0 &&
		    (space + 1 + len == end || strchr(" ,;:)", space[1 + len])))
			return true;
	}
	return false;
}

static const char *end_of_word(const char *s, const char *end)
{
	while (s < end && (*s != ' ' || is_unit(s, end)))
		s++;
	return s;
}

/* Two spaces are between the parts of a line that has such. */
static const char *end_of_part(const char *s, const char *end)
{
	while (s < end && !(s[0] == ' ' && s + 1 < end && s[1] == ' '))
		s++;
	return s;
}

/* Spaces between words stay as they are, but where a line ends. */
static void wrap_line(const char *s, const char *end, size_t width, FILE *out)
{
	const char *word = end_of_spaces(s, end);
	const size_t indent = (size_t)(word - s) + FURTHER_IN, room = width > indent ? width - indent : 0;
	const bool has_parts = end_of_part(word, end) < end;
	const char *broken = s; /* the end of a part that is too long for a line of its own, and goes word by word */
	size_t column = 0;
	bool first = true;

	for (const char *next; s < end; s = next) {
		size_t columns;

		word = end_of_spaces(s, end);
		next = has_parts && word >= broken ? end_of_part(word, end) : end_of_word(word, end);
		if (count_columns(word, next) > room && word >= broken) {
			broken = next;
			next = end_of_word(word, end);
		}
		columns = count_columns(s, next);
		if (!first && column + columns > width && indent < width) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
			columns = count_columns(word, next);
			s = word;
		}
		fwrite(s, 1, (size_t)(next - s), out);
		column += columns;
		first = false;
	}
}

void wrap_lines(const char *text, size_t width, FILE *out)
{
	while (*text) {
		const char *end = strchrnul(text, '\n');

		if (count_columns(text, end) > width)
			wrap_line(text, end, width, out);
		else
			fwrite(text, 1, (size_t)(end - text), out);
		if (*end)
			fputc('\n', out);
		text = *end ? end + 1 : end;
	}
}
