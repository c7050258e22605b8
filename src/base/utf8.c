/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

struct form {
	uint8_t lead_mask;
	uint8_t lead;
	uint8_t length;
	uint32_t least; /* a smaller code point has a shorter form, and must use it */
};

static const struct form forms[] = {
	{0x80, 0x00, 1, 0},
	{0xe0, 0xc0, 2, 0x80},
	{0xf0, 0xe0, 3, 0x800},
	{0xf8, 0xf0, 4, 0x10000},
};

static bool is_valid(uint32_t code, const struct form *form)
{
	return code >= form->least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

/* 0 when the bytes are not of this form. */
static size_t decode(const char *s, const struct form *form, uint32_t *code)
{
	if (((uint8_t)s[0] & form->lead_mask) != form->lead)
		return 0;
	*code = (uint8_t)s[0] & (uint8_t)~form->lead_mask;
	for (size_t i = 1; i < form->length; i++) {
		if (((uint8_t)s[i] & 0xc0) != 0x80) /* also stops at the NUL */
			return 0;
		*code = *code << 6 | ((uint8_t)s[i] & 0x3f);
	}
	return is_valid(*code, form) ? form->length : 0;
}

size_t utf8_next(const char *s, uint32_t *code)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t len = decode(s, &forms[i], code);

		if (len)
			return len;
	}
	*code = UTF8_REPLACEMENT;
	return 1;
}

bool utf8_is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

size_t utf8_put(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | (c >> 18 & 7));
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}
