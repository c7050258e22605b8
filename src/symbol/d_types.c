/* SPDX-License-Identifier: MIT */
#include "symbol/d_parser.h"

#include <stdint.h>
#include <string.h>

bool d_modifiers(struct d *d)
{
	static const struct {
		const char *code, *text;
	} modifiers[] = {{"x", " const"}, {"y", " immutable"}, {"O", " shared"}, {"Ng", " inout"}};
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; !again && i < sizeof(modifiers) / sizeof(modifiers[0]); i++) {
			again = d_take(d, modifiers[i].code);
			if (again)
				d_add(d, modifiers[i].text);
		}
	}
	return !d->failed;
}

static bool parse_attributes(struct d *d, bool write)
{
	static const struct {
		const char *code, *text;
	} attributes[] = {{"Na", "pure "},     {"Nb", "nothrow "}, {"Nc", "ref "},   {"Nd", "@property "},
			  {"Ne", "@trusted "}, {"Nf", "@safe "},   {"Ni", "@nogc "}, {"Nj", "return "},
			  {"Nl", "scope "},    {"Nm", "@live "}};

	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (d_take(d, attributes[i].code)) {
			if (write)
				d_add(d, attributes[i].text);
			i = SIZE_MAX; /* start again from the first */
		}
	return !d->failed;
}

static bool parse_parameters(struct d *d)
{
	for (unsigned n = 0;; n++) {
		if (d_take(d, "Z"))
			return true;
		if (d_take(d, "X"))
			return d_add(d, "...");
		if (d_take(d, "Y"))
			return d_add(d, n ? ", ..." : "...");
		if (n)
			d_add(d, ", ");
		while (*d->p == 'M' || strncmp(d->p, "Nk", 2) == 0)
			d_add(d, d_take(d, "M") ? "scope " : d_take(d, "Nk") ? "return " : "");
		if (d_take(d, "I")) {
			d_add(d, "in ");
			if (d_take(d, "K"))
				d_add(d, "ref ");
		} else if (d_take(d, "J")) {
			d_add(d, "out ");
		} else if (d_take(d, "K")) {
			d_add(d, "ref ");
		} else if (d_take(d, "L")) {
			d_add(d, "lazy ");
		}
		if (!d_type(d))
			return d_fail(d);
	}
}

/* Of a function's name, which has neither attributes nor return type. */
bool d_signature(struct d *d)
{
	d->p++; /* calling convention */
	return parse_attributes(d, false) && d_add(d, "(") && parse_parameters(d) && d_add(d, ")");
}

/* "extern(C) int(char) pure ", which "function" or "delegate" follows; the return type comes last in the name. */
static bool parse_function(struct d *d)
{
	static const char *const conventions[] = {
		['F'] = "",
		['U'] = "extern(C) ",
		['W'] = "extern(Windows) ",
		['V'] = "extern(Pascal) ",
		['R'] = "extern(C++) ",
		['Y'] = "extern(Objective-C) ",
	};
	size_t attributes, arguments, type;

	if (!d_is_function(d))
		return d_fail(d);
	d_add(d, conventions[(unsigned char)*d->p++]);
	attributes = d->len;
	parse_attributes(d, true);
	arguments = d->len;
	if (!d_add(d, "(") || !parse_parameters(d) || !d_add(d, ") "))
		return false;
	d_rotate(d, attributes, arguments);
	type = d->len;
	if (!d_type(d))
		return d_fail(d);
	d_rotate(d, attributes, type);
	return !d->failed;
}

static bool parse_wrapped(struct d *d, const char *before)
{
	return d_add(d, before) && d_type(d) && d_add(d, ")");
}

static bool parse_delegate(struct d *d)
{
	size_t modifiers = d->len, function;

	d_modifiers(d);
	function = d->len;
	if (!(*d->p == 'Q' ? d_follow(d, parse_function) : parse_function(d)) || !d_add(d, "delegate"))
		return d_fail(d);
	d_rotate(d, modifiers, function);
	return !d->failed;
}

static bool parse_array(struct d *d)
{
	const char *digits = d->p;
	size_t len = strspn(digits, "0123456789");

	d->p += len;
	return d_type(d) && d_add(d, "[") && d_add_n(d, digits, len) && d_add(d, "]");
}

static bool parse_map(struct d *d)
{
	size_t key = d->len, value;

	if (!d_add(d, "[") || !d_type(d) || !d_add(d, "]"))
		return false;
	value = d->len;
	if (!d_type(d))
		return false;
	d_rotate(d, key, value);
	return !d->failed;
}

static bool parse_tuple(struct d *d)
{
	size_t count;

	if (!d_number(d, &count) || !d_add(d, "Tuple!("))
		return false;
	for (size_t i = 0; i < count; i++)
		if ((i && !d_add(d, ", ")) || !d_type(d))
			return false;
	return d_add(d, ")");
}

static bool parse_basic(struct d *d)
{
	static const char *const names[] = {
		['v'] = "void",   ['g'] = "byte",    ['h'] = "ubyte",        ['s'] = "short",   ['t'] = "ushort",
		['i'] = "int",    ['k'] = "uint",    ['l'] = "long",         ['m'] = "ulong",   ['f'] = "float",
		['d'] = "double", ['e'] = "real",    ['o'] = "ifloat",       ['p'] = "idouble", ['j'] = "ireal",
		['q'] = "cfloat", ['r'] = "cdouble", ['c'] = "creal",        ['b'] = "bool",    ['a'] = "char",
		['u'] = "wchar",  ['w'] = "dchar",   ['n'] = "typeof(null)",
	};
	unsigned char c = (unsigned char)*d->p;

	if (d_take(d, "zi"))
		return d_add(d, "cent");
	if (d_take(d, "zk"))
		return d_add(d, "ucent");
	if (c >= sizeof(names) / sizeof(names[0]) || !names[c])
		return d_fail(d);
	d->p++;
	return d_add(d, names[c]);
}

static bool parse_type_here(struct d *d)
{
	if (d_take(d, "O"))
		return parse_wrapped(d, "shared(");
	if (d_take(d, "x"))
		return parse_wrapped(d, "const(");
	if (d_take(d, "y"))
		return parse_wrapped(d, "immutable(");
	if (d_take(d, "Ng"))
		return parse_wrapped(d, "inout(");
	if (d_take(d, "Nh"))
		return parse_wrapped(d, "__vector(");
	if (d_take(d, "Nn"))
		return d_add(d, "typeof(*null)");
	if (d_take(d, "A"))
		return d_type(d) && d_add(d, "[]");
	if (d_take(d, "G"))
		return parse_array(d);
	if (d_take(d, "H"))
		return parse_map(d);
	if (d_take(d, "P"))
		return d_is_function(d) ? parse_function(d) && d_add(d, "function") : d_type(d) && d_add(d, "*");
	if (d_is_function(d))
		return parse_function(d) && d_add(d, "function");
	if (*d->p && strchr("ICSET", *d->p)) {
		d->p++;
		return d_qualified(d, false);
	}
	if (d_take(d, "D"))
		return parse_delegate(d);
	if (d_take(d, "B"))
		return parse_tuple(d);
	if (*d->p == 'Q')
		return d_follow(d, d_type);
	return parse_basic(d);
}

bool d_type(struct d *d)
{
	bool ok = d_enter(d) && parse_type_here(d);

	d->depth--;
	return ok || d_fail(d);
}
