/* SPDX-License-Identifier: MIT */
#include "symbol/demangle_d.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/d_parser.h"

/*
 * The grammar is that of "Name Mangling" in D's ABI specification, with the older form of template names. Why not
 * libiberty's demangler: back references let a hundred bytes stand for gigabytes, and its output is unlimited. Here
 * output, depth and the number of steps are limited, and any failure ends it all.
 */
enum {
	MAX_DEPTH = 256,
	MAX_STEPS = 100000, /* types and names to parse at most: back references can repeat parts that print nothing */
};

static bool parse_symbol_name(struct d *d);

bool d_fail(struct d *d)
{
	d->failed = true;
	return false;
}

bool d_add_n(struct d *d, const char *text, size_t len)
{
	d->full |= len > d->limit - d->len || !vec_reserve(d, d->len + len + 1);
	if (d->failed || d->full)
		return d_fail(d);
	memcpy(d->data + d->len, text, len);
	d->len += len;
	return true;
}

bool d_add(struct d *d, const char *text)
{
	return d_add_n(d, text, strlen(text));
}

bool d_take(struct d *d, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(d->p, text, len) != 0)
		return false;
	d->p += len;
	return true;
}

bool d_enter(struct d *d)
{
	return ++d->depth <= MAX_DEPTH && ++d->steps <= MAX_STEPS && !d->failed ? true : d_fail(d);
}

void d_rotate(struct d *d, size_t at, size_t mid)
{
	size_t first = mid - at, second = d->len - mid;
	char *copy;

	if (d->failed || !first || !second)
		return;
	copy = malloc(first);
	if (!copy) {
		d_fail(d);
		return;
	}
	memcpy(copy, d->data + at, first);
	memmove(d->data + at, d->data + mid, second);
	memcpy(d->data + at + second, copy, first);
	free(copy);
}

bool d_number(struct d *d, size_t *out)
{
	*out = 0;
	if (!isdigit((unsigned char)*d->p))
		return d_fail(d);
	for (; isdigit((unsigned char)*d->p); d->p++) {
		*out = *out * 10 + (size_t)(*d->p - '0');
		if (*out > UINT32_MAX)
			return d_fail(d);
	}
	return true;
}

/* A back reference "Q…": the distance to its target, in letters. NULL when it is not one. */
static const char *find_reference(const struct d *d, const char *p, const char **after)
{
	const char *q = p;
	size_t distance = 0;

	if (*q++ != 'Q')
		return NULL;
	for (; isupper((unsigned char)*q); q++) {
		distance = distance * 26 + (size_t)(*q - 'A');
		if (distance > UINT32_MAX)
			return NULL;
	}
	if (!islower((unsigned char)*q))
		return NULL;
	distance = distance * 26 + (size_t)(*q++ - 'a');
	*after = q;
	return distance == 0 || distance > (size_t)(p - d->start) ? NULL : p - distance;
}

bool d_follow(struct d *d, bool (*parse)(struct d *d))
{
	const char *after = NULL, *outer = d->reference;
	const char *target = find_reference(d, d->p, &after);

	if (!target || (outer && d->p >= outer))
		return d_fail(d);
	d->reference = d->p;
	d->p = target;
	if (!parse(d))
		return d_fail(d);
	d->p = after;
	d->reference = outer;
	return true;
}

static bool is_template(const char *p)
{
	return strncmp(p, "__T", 3) == 0 || strncmp(p, "__U", 3) == 0;
}

static bool is_symbol_name(const struct d *d)
{
	const char *after, *target = find_reference(d, d->p, &after);

	return isdigit((unsigned char)*d->p) || is_template(d->p) || (target && isdigit((unsigned char)*target));
}

bool d_is_function(const struct d *d)
{
	return *d->p && strchr("FUVWRY", *d->p);
}

/* Names. */

/* Things that belong to the name before: "initializer for a.b". The dot before this name goes. */
static bool add_prefix(struct d *d, const char *prefix)
{
	size_t mid;

	if (d->len && d->data[d->len - 1] == '.')
		d->len--;
	mid = d->len;
	d_add(d, prefix);
	d_rotate(d, 0, mid);
	return !d->failed;
}

static bool add_identifier(struct d *d, const char *name, size_t len)
{
	static const struct {
		const char *name, *text;
	} plain[] = {{"__ctor", "this"}, {"__dtor", "~this"}, {"__postblit", "this(this)"}},
	  prefixes[] = {{"__init", "initializer for "},
			{"__vtbl", "vtable for "},
			{"__Class", "ClassInfo for "},
			{"__Interface", "Interface for "},
			{"__ModuleInfo", "ModuleInfo for "}};

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (strlen(plain[i].name) == len && memcmp(plain[i].name, name, len) == 0) {
			if (i == 2 && !d_take(d, "MFZ"))
				break;
			return d_add(d, plain[i].text);
		}
	for (size_t i = 0; *d->p == 'Z' && i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strlen(prefixes[i].name) == len && memcmp(prefixes[i].name, name, len) == 0)
			return add_prefix(d, prefixes[i].text);
	return d_add_n(d, name, len);
}

/* Nested functions of the same name are told apart by an invented parent, "__S" and a number. */
static bool is_invented(const char *name, size_t len)
{
	if (len < 4 || strncmp(name, "__S", 3) != 0)
		return false;
	return strspn(name + 3, "0123456789") >= len - 3;
}

/* Where to go back to when a guess was wrong. */
struct mark {
	const char *p;
	size_t len;
	unsigned depth;
	const char *reference;
};

static struct mark set_mark(const struct d *d)
{
	return (struct mark){d->p, d->len, d->depth, d->reference};
}

/* False when the guess did not fail, but a limit was reached. */
static bool go_back(struct d *d, const struct mark *mark)
{
	if (d->steps > MAX_STEPS || d->full)
		return d_fail(d);
	d->failed = false;
	d->p = mark->p;
	d->len = mark->len;
	d->depth = mark->depth;
	d->reference = mark->reference;
	return true;
}

static bool parse_symbol(struct d *d)
{
	if (is_symbol_name(d))
		return d_qualified(d, false);
	return d_take(d, "_D") && is_symbol_name(d) && d_mangled(d);
}

/*
 * In the older form the length of the symbol comes first, and the symbol may start with a digit: all ways to split the
 * digits are tried.
 */
static bool parse_symbol_argument(struct d *d)
{
	struct mark mark = set_mark(d);
	size_t len;

	if (!isdigit((unsigned char)*d->p))
		return parse_symbol(d);
	if (!d_number(d, &len) || len == 0)
		return d_fail(d);
	for (const char *at = d->p; len && at > mark.p; at--, len /= 10) {
		d->p = at;
		if (parse_symbol(d) && d->p == at + len)
			return true;
		if (!go_back(d, &mark))
			return false;
	}
	return parse_symbol(d);
}

static bool parse_argument(struct d *d)
{
	const char *type, *after;
	size_t at = d->len, len;

	d_take(d, "H"); /* specialised */
	if (d_take(d, "T"))
		return d_type(d);
	if (d_take(d, "S"))
		return parse_symbol_argument(d);
	if (d_take(d, "V")) {
		type = *d->p == 'Q' ? find_reference(d, d->p, &after) : d->p;
		if (!type || !d_type(d))
			return d_fail(d);
		if (*d->p != 'S')
			d->len = at; /* only struct literals are written with their type */
		return d_value(d, *type);
	}
	if (d_take(d, "X") && d_number(d, &len)) { /* mangled in another language */
		if (strnlen(d->p, len) < len || !d_add_n(d, d->p, len))
			return d_fail(d);
		d->p += len;
		return true;
	}
	return d_fail(d);
}

static bool parse_template(struct d *d)
{
	d->p += strlen("__T");
	if (!is_symbol_name(d) || !parse_symbol_name(d))
		return d_fail(d);
	d_add(d, "!(");
	for (unsigned n = 0; !d_take(d, "Z"); n++) {
		if (n)
			d_add(d, ", ");
		if (!parse_argument(d))
			return d_fail(d);
	}
	return d_add(d, ")");
}

static bool parse_sized_name(struct d *d)
{
	const char *name;
	size_t len;

	if (!d_number(d, &len) || len == 0 || strnlen(d->p, len) < len)
		return d_fail(d);
	name = d->p;
	if (len >= 5 && is_template(name)) /* the older form, with its length */
		return parse_template(d) && (d->p == name + len || d_fail(d));
	d->p += len;
	if (is_invented(name, len))
		return parse_symbol_name(d);
	return add_identifier(d, name, len);
}

static bool parse_symbol_name(struct d *d)
{
	bool ok;

	if (!d_enter(d))
		return false;
	if (*d->p == 'Q')
		ok = d_follow(d, parse_sized_name);
	else
		ok = is_template(d->p) ? parse_template(d) : parse_sized_name(d);
	d->depth--;
	return ok;
}

/* The whole. */

/* A function's parameters are part of its name, unless nothing follows: then it was the type of something else. */
static bool parse_own_parameters(struct d *d, bool with_modifiers)
{
	struct mark mark = set_mark(d);
	size_t signature;

	if (d_take(d, "M"))
		d_modifiers(d);
	signature = d->len;
	if (!d_is_function(d) || !d_signature(d) || !*d->p || *d->p == '.')
		return go_back(d, &mark);
	d_rotate(d, mark.len, signature);
	if (!with_modifiers)
		d->len -= signature - mark.len;
	return !d->failed;
}

bool d_qualified(struct d *d, bool with_modifiers)
{
	bool ok = d_enter(d);

	for (unsigned n = 0; ok; n++) {
		if (n)
			d_add(d, ".");
		while (*d->p == '0') /* nameless */
			d->p++;
		ok = parse_symbol_name(d);
		if (ok && (*d->p == 'M' || d_is_function(d)))
			ok = parse_own_parameters(d, with_modifiers);
		if (!is_symbol_name(d))
			break;
	}
	d->depth--;
	return ok || d_fail(d);
}

/* The type of a variable, or what a function returns, is not shown. */
bool d_mangled(struct d *d)
{
	size_t len;

	if (!d_qualified(d, true))
		return false;
	if (d_take(d, "Z"))
		return true;
	len = d->len;
	if (!d_type(d))
		return false;
	d->len = len;
	return true;
}

/* "_D1a1fFZv.part.0" is a piece that the compiler split off the function. */
static bool parse_clone(struct d *d)
{
	return !*d->p || (*d->p == '.' && d_add(d, " [clone ") && d_add(d, d->p) && d_add(d, "]"));
}

char *demangle_d(const char *name, size_t limit)
{
	struct d d = {.start = name, .p = name, .limit = limit};

	if (strcmp(name, "_Dmain") == 0)
		return strdup("D main");
	if (!d_take(&d, "_D") || !is_symbol_name(&d) || !d_mangled(&d) || !parse_clone(&d) || !d.len) {
		vec_deinit(&d);
		return NULL;
	}
	d.data[d.len] = '\0';
	return d.data;
}
