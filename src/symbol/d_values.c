/* SPDX-License-Identifier: MIT */
#include "symbol/d_parser.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_integer(struct d *d, char type)
{
	const char *digits = d->p;
	size_t len = strspn(digits, "0123456789");
	char text[16];
	unsigned long value = strtoul(digits, NULL, 10);

	if (len == 0)
		return d_fail(d);
	d->p += len;
	if (type == 'b')
		return d_add(d, value ? "true" : "false");
	if (type == 'a' || type == 'u' || type == 'w') {
		if (type == 'a' && value >= ' ' && value < 0x7f)
			snprintf(text, sizeof(text), "'%c'", (char)value);
		else
			snprintf(text, sizeof(text),
				 type == 'a'   ? "'\\x%02x'"
				 : type == 'u' ? "'\\u%04x'"
					       : "'\\U%08x'",
				 (unsigned)value);
		return d_add(d, text);
	}
	d_add_n(d, digits, len);
	return d_add(d, type == 'h' || type == 't' || type == 'k' ? "u" : type == 'l' ? "L" : type == 'm' ? "uL" : "");
}

static bool parse_real(struct d *d)
{
	size_t len;

	if (d_take(d, "NAN"))
		return d_add(d, "NaN");
	if (d_take(d, "INF"))
		return d_add(d, "Inf");
	if (d_take(d, "NINF"))
		return d_add(d, "-Inf");
	if (d_take(d, "N"))
		d_add(d, "-");
	len = strspn(d->p, "0123456789ABCDEF");
	if (len == 0)
		return d_fail(d);
	d_add(d, "0x");
	d_add_n(d, d->p, 1);
	d_add(d, ".");
	d_add_n(d, d->p + 1, len - 1);
	d->p += len;
	if (!d_take(d, "P"))
		return d_fail(d);
	d_add(d, "p");
	if (d_take(d, "N"))
		d_add(d, "-");
	len = strspn(d->p, "0123456789");
	d_add_n(d, d->p, len);
	d->p += len;
	return len > 0 && !d->failed;
}

static bool add_char(struct d *d, unsigned c)
{
	static const char escapes[] = {['\t'] = 't', ['\n'] = 'n', ['\v'] = 'v', ['\f'] = 'f', ['\r'] = 'r'};
	char text[8];

	if (c < sizeof(escapes) && escapes[c])
		snprintf(text, sizeof(text), "\\%c", escapes[c]);
	else
		snprintf(text, sizeof(text), c >= ' ' && c < 0x7f ? "%c" : "\\x%02x", c);
	return d_add(d, text);
}

static bool parse_string(struct d *d, char type)
{
	size_t count;
	unsigned c;
	int len;

	if (!d_number(d, &count) || !d_take(d, "_") || !d_add(d, "\""))
		return d_fail(d);
	for (size_t i = 0; i < count; i++) {
		if (!isxdigit((unsigned char)d->p[0]) || sscanf(d->p, "%2x%n", &c, &len) != 1 || len != 2 ||
		    !add_char(d, c))
			return d_fail(d);
		d->p += 2;
	}
	d_add(d, "\"");
	return type == 'a' ? !d->failed : d_add_n(d, &type, 1);
}

/* "[1, 2]" and "[1:2, 3:4]", and the same in parentheses for the fields of a struct. */
static bool parse_list(struct d *d, const char *brackets, bool pairs)
{
	size_t count;

	if (!d_number(d, &count) || !d_add_n(d, brackets, 1))
		return d_fail(d);
	for (size_t i = 0; i < count; i++) {
		if (i)
			d_add(d, ", ");
		if (!d_value(d, '\0') || (pairs && (!d_add(d, ":") || !d_value(d, '\0'))))
			return d_fail(d);
	}
	return d_add_n(d, brackets + 1, 1);
}

static bool parse_value_here(struct d *d, char type)
{
	if (d_take(d, "n"))
		return d_add(d, "null");
	if (d_take(d, "N"))
		return d_add(d, "-") && parse_integer(d, type);
	if (d_take(d, "i") || isdigit((unsigned char)*d->p))
		return parse_integer(d, type);
	if (d_take(d, "e"))
		return parse_real(d);
	if (d_take(d, "c"))
		return parse_real(d) && d_add(d, "+") && d_take(d, "c") && parse_real(d) && d_add(d, "i");
	if (*d->p == 'a' || *d->p == 'w' || *d->p == 'd') {
		d->p++;
		return parse_string(d, d->p[-1]);
	}
	if (d_take(d, "A"))
		return parse_list(d, "[]", type == 'H');
	if (d_take(d, "S"))
		return parse_list(d, "()", false);
	if (d_take(d, "f"))
		return d_take(d, "_D") && d_mangled(d);
	return d_fail(d);
}

bool d_value(struct d *d, char type)
{
	bool ok = d_enter(d) && parse_value_here(d, type);

	d->depth--;
	return ok || d_fail(d);
}
