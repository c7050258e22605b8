/* SPDX-License-Identifier: MIT */
#include "report/shorten.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DOTS "…"

static bool continues_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t text_columns(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += !continues_character(*s);
	return n;
}

static bool follows_operator(const char *name, const char *at)
{
	static const char word[] = "operator";

	return at - name >= (ptrdiff_t)sizeof(word) - 1 &&
	       strncmp(at - (sizeof(word) - 1), word, sizeof(word) - 1) == 0;
}

/* Whether the bracket there belongs to an operator's name: operator<, operator->, operator(). */
static bool is_operator(const char *name, const char *at)
{
	const char *p = at;

	if (*at == '(')
		return follows_operator(name, at) && at[1] == ')';
	if (*at == ')')
		return at > name && at[-1] == '(' && follows_operator(name, at - 1);
	while (p > name && strchr("<>=-", p[-1]))
		p--;
	return follows_operator(name, p);
}

/* Where the bracket that is opened there is closed; NULL: nowhere. */
static char *find_close(const char *name, char *at, char open, char close)
{
	int depth = 0;

	for (; *at; at++) {
		if ((*at != open && *at != close) || is_operator(name, at))
			continue;
		depth += *at == open ? 1 : -1;
		if (!depth)
			return at;
	}
	return NULL;
}

/* Leaves out what is between outermost brackets of that kind, where that makes it shorter. */
static void empty_brackets(char *name, char open, char close)
{
	static const char anonymous[] = "(anonymous namespace)";

	for (char *at = name; *at; at++) {
		char *end;

		if (*at != open || is_operator(name, at) || strncmp(at, anonymous, sizeof(anonymous) - 1) == 0)
			continue;
		end = find_close(name, at, open, close);
		if (!end)
			return;
		if (end - at - 1 > (ptrdiff_t)sizeof(DOTS) - 1) {
			memcpy(at + 1, DOTS, sizeof(DOTS) - 1);
			memmove(at + sizeof(DOTS), end, strlen(end) + 1);
			end = at + sizeof(DOTS);
		}
		at = end;
	}
}

static char *skip_columns(char *s, size_t columns)
{
	for (; *s; s++)
		if (!continues_character(*s) && !columns--)
			break;
	return s;
}

/* The end of a qualified name says more than its start. There is room for the dots behind it. */
static void empty_middle(char *name, size_t max)
{
	size_t columns = text_columns(name), head = max / 3, tail = max > head ? max - head - 1 : 0;
	char *from = skip_columns(name, head), *to = skip_columns(name, columns - tail);

	if (columns <= max)
		return;
	memmove(from + sizeof(DOTS) - 1, to, strlen(to) + 1);
	memcpy(from, DOTS, sizeof(DOTS) - 1);
}

char *shorten_name(const char *name, size_t max)
{
	char *copy = malloc(strlen(name) + sizeof(DOTS));

	if (copy)
		strcpy(copy, name);
	if (copy && text_columns(copy) > max)
		empty_brackets(copy, '<', '>');
	if (copy && text_columns(copy) > max)
		empty_brackets(copy, '(', ')');
	if (copy)
		empty_middle(copy, max);
	return copy;
}

char *shorten_symbol(const struct frame *frame, size_t max)
{
	const bool too_long = text_columns(frame->symbol) > max;

	return shorten_name(
		too_long && frame->kind == FRAME_KIND_JAVA ? name_without_package(frame->symbol) : frame->symbol, max);
}
