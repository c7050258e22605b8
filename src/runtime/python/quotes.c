/* SPDX-License-Identifier: MIT */
#include "runtime/python/quotes.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* What str.isprintable() rules out, but for characters that are not assigned: control, format, surrogate, private, separators. */
static const struct {
	uint32_t first;
	uint32_t last;
} unprintable[] = {
	{0, 0x1f},         {0x7f, 0xa0},      {0xad, 0xad},      {0x600, 0x605},   {0x61c, 0x61c},   {0x6dd, 0x6dd},
	{0x70f, 0x70f},    {0x8e2, 0x8e2},    {0x1680, 0x1680},  {0x180e, 0x180e}, {0x2000, 0x200f}, {0x2028, 0x202f},
	{0x205f, 0x206f},  {0x3000, 0x3000},  {0xd800, 0xf8ff},  {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xfffe, 0xffff},
	{0xe0000, 0xe00ff}, {0xe01f0, UINT32_MAX},
};

static bool is_printable(uint32_t c)
{
	for (size_t i = 0; i < sizeof(unprintable) / sizeof(unprintable[0]); i++)
		if (c >= unprintable[i].first && c <= unprintable[i].last)
			return false;
	return true;
}

char quotes_choose(const uint32_t *characters, size_t n)
{
	bool single = false;

	for (size_t i = 0; i < n; i++) {
		if (characters[i] == '"')
			return '\'';
		single |= characters[i] == '\'';
	}
	return single ? '"' : '\'';
}

size_t quotes_put(char *out, uint32_t c, char quote, bool narrow)
{
	static const char named[] = "\t\n\r\\", letters[] = "tnr\\";
	const char *name = c && c < 0x80 ? strchr(named, (int)c) : NULL;
	char text[QUOTED_CHARACTER + 1];
	int len;

	if (name || c == (uint32_t)quote) {
		out[0] = '\\';
		out[1] = name ? letters[name - named] : quote;
		return 2;
	}
	if (narrow ? c >= ' ' && c < 0x7f : is_printable(c))
		return utf8_put(out, c);
	len = snprintf(text, sizeof(text), c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
	memcpy(out, text, (size_t)len);
	return (size_t)len;
}
