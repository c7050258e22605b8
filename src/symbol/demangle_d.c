/* SPDX-License-Identifier: MIT */
#include "symbol/demangle_d.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/*
 * The grammar is that of "Name Mangling" in D's ABI specification, with the older form of template names. Why not
 * libiberty's: back references let a hundred bytes stand for gigabytes, and it has no limit to what it writes. Here
 * output, depth and the number of steps are limited, and whatever fails ends all.
 */
enum {
	MAX_DEPTH = 256,
	MAX_STEPS = 100000, /* types and names that are looked at: back references can repeat what prints nothing */
};

struct d {
	const char *start; /* of the mangled name */
	const char *p;
	const char *reference; /* the back reference that is followed: those in what it stands for come before it */
	VEC_FIELDS(char);
	size_t limit;
	unsigned depth;
	unsigned steps;
	bool failed;
	bool full; /* failed for lack of room */
};

static bool parse_type(struct d *d);
static bool parse_function(struct d *d);
static bool parse_qualified(struct d *d, bool with_modifiers);
static bool parse_symbol_name(struct d *d);
static bool parse_value(struct d *d, char type);
static bool parse_mangled(struct d *d);

static bool fail(struct d *d)
{
	d->failed = true;
	return false;
}

static bool add_n(struct d *d, const char *text, size_t len)
{
	d->full |= len > d->limit - d->len || !vec_reserve(d, d->len + len + 1);
	if (d->failed || d->full)
		return fail(d);
	memcpy(d->data + d->len, text, len);
	d->len += len;
	return true;
}

static bool add(struct d *d, const char *text)
{
	return add_n(d, text, strlen(text));
}

static bool take(struct d *d, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(d->p, text, len) != 0)
		return false;
	d->p += len;
	return true;
}

static bool enter(struct d *d)
{
	return ++d->depth <= MAX_DEPTH && ++d->steps <= MAX_STEPS && !d->failed ? true : fail(d);
}

/* Puts what was written from `mid` on before what was written from `at` on. */
static void rotate(struct d *d, size_t at, size_t mid)
{
	size_t first = mid - at, second = d->len - mid;
	char *copy;

	if (d->failed || !first || !second)
		return;
	copy = malloc(first);
	if (!copy) {
		fail(d);
		return;
	}
	memcpy(copy, d->data + at, first);
	memmove(d->data + at, d->data + mid, second);
	memcpy(d->data + at + second, copy, first);
	free(copy);
}

static bool parse_number(struct d *d, size_t *out)
{
	*out = 0;
	if (!isdigit((unsigned char)*d->p))
		return fail(d);
	for (; isdigit((unsigned char)*d->p); d->p++) {
		*out = *out * 10 + (size_t)(*d->p - '0');
		if (*out > UINT32_MAX)
			return fail(d);
	}
	return true;
}

/* A back reference "Q…": the distance to what it stands for, in letters. NULL when it is none. */
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

/* Parses at the place that a back reference stands for. */
static bool follow(struct d *d, bool (*parse)(struct d *d))
{
	const char *after = NULL, *outer = d->reference;
	const char *target = find_reference(d, d->p, &after);

	if (!target || (outer && d->p >= outer))
		return fail(d);
	d->reference = d->p;
	d->p = target;
	if (!parse(d))
		return fail(d);
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

static bool is_call_convention(const struct d *d)
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
	add(d, prefix);
	rotate(d, 0, mid);
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
			if (i == 2 && !take(d, "MFZ"))
				break;
			return add(d, plain[i].text);
		}
	for (size_t i = 0; *d->p == 'Z' && i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strlen(prefixes[i].name) == len && memcmp(prefixes[i].name, name, len) == 0)
			return add_prefix(d, prefixes[i].text);
	return add_n(d, name, len);
}

/* Functions of the same name in one function are told apart by an invented parent, "__S" and a number. */
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

/* False when it was not the guess that failed, but a limit that was reached. */
static bool go_back(struct d *d, const struct mark *mark)
{
	if (d->steps > MAX_STEPS || d->full)
		return fail(d);
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
		return parse_qualified(d, false);
	return take(d, "_D") && is_symbol_name(d) && parse_mangled(d);
}

/*
 * In the older form the length of the symbol comes first, and the symbol may start with a digit: all ways to part the
 * digits are tried.
 */
static bool parse_symbol_argument(struct d *d)
{
	struct mark mark = set_mark(d);
	size_t len;

	if (!isdigit((unsigned char)*d->p))
		return parse_symbol(d);
	if (!parse_number(d, &len) || len == 0)
		return fail(d);
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

	take(d, "H"); /* specialised */
	if (take(d, "T"))
		return parse_type(d);
	if (take(d, "S"))
		return parse_symbol_argument(d);
	if (take(d, "V")) {
		type = *d->p == 'Q' ? find_reference(d, d->p, &after) : d->p;
		if (!type || !parse_type(d))
			return fail(d);
		if (*d->p != 'S')
			d->len = at; /* only literals of structs are written with their type */
		return parse_value(d, *type);
	}
	if (take(d, "X") && parse_number(d, &len)) { /* mangled in another language */
		if (strnlen(d->p, len) < len || !add_n(d, d->p, len))
			return fail(d);
		d->p += len;
		return true;
	}
	return fail(d);
}

static bool parse_template(struct d *d)
{
	d->p += strlen("__T");
	if (!is_symbol_name(d) || !parse_symbol_name(d))
		return fail(d);
	add(d, "!(");
	for (unsigned n = 0; !take(d, "Z"); n++) {
		if (n)
			add(d, ", ");
		if (!parse_argument(d))
			return fail(d);
	}
	return add(d, ")");
}

static bool parse_sized_name(struct d *d)
{
	const char *name;
	size_t len;

	if (!parse_number(d, &len) || len == 0 || strnlen(d->p, len) < len)
		return fail(d);
	name = d->p;
	if (len >= 5 && is_template(name)) /* the older form, with its length */
		return parse_template(d) && (d->p == name + len || fail(d));
	d->p += len;
	if (is_invented(name, len))
		return parse_symbol_name(d);
	return add_identifier(d, name, len);
}

static bool parse_symbol_name(struct d *d)
{
	bool ok;

	if (!enter(d))
		return false;
	if (*d->p == 'Q')
		ok = follow(d, parse_sized_name);
	else
		ok = is_template(d->p) ? parse_template(d) : parse_sized_name(d);
	d->depth--;
	return ok;
}

/* Types. */

static bool parse_modifiers(struct d *d)
{
	static const struct {
		const char *code, *text;
	} modifiers[] = {{"x", " const"}, {"y", " immutable"}, {"O", " shared"}, {"Ng", " inout"}};
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; !again && i < sizeof(modifiers) / sizeof(modifiers[0]); i++) {
			again = take(d, modifiers[i].code);
			if (again)
				add(d, modifiers[i].text);
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
		if (take(d, attributes[i].code)) {
			if (write)
				add(d, attributes[i].text);
			i = SIZE_MAX; /* from the first again */
		}
	return !d->failed;
}

static bool parse_parameters(struct d *d)
{
	for (unsigned n = 0;; n++) {
		if (take(d, "Z"))
			return true;
		if (take(d, "X"))
			return add(d, "...");
		if (take(d, "Y"))
			return add(d, n ? ", ..." : "...");
		if (n)
			add(d, ", ");
		while (*d->p == 'M' || strncmp(d->p, "Nk", 2) == 0)
			add(d, take(d, "M") ? "scope " : take(d, "Nk") ? "return " : "");
		if (take(d, "I")) {
			add(d, "in ");
			if (take(d, "K"))
				add(d, "ref ");
		} else if (take(d, "J")) {
			add(d, "out ");
		} else if (take(d, "K")) {
			add(d, "ref ");
		} else if (take(d, "L")) {
			add(d, "lazy ");
		}
		if (!parse_type(d))
			return fail(d);
	}
}

/* "(int, char)" of a function's name, which has neither attributes nor return type. */
static bool parse_signature(struct d *d)
{
	d->p++; /* calling convention */
	return parse_attributes(d, false) && add(d, "(") && parse_parameters(d) && add(d, ")");
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

	if (!is_call_convention(d))
		return fail(d);
	add(d, conventions[(unsigned char)*d->p++]);
	attributes = d->len;
	parse_attributes(d, true);
	arguments = d->len;
	if (!add(d, "(") || !parse_parameters(d) || !add(d, ") "))
		return false;
	rotate(d, attributes, arguments);
	type = d->len;
	if (!parse_type(d))
		return fail(d);
	rotate(d, attributes, type);
	return !d->failed;
}

static bool parse_wrapped(struct d *d, const char *before)
{
	return add(d, before) && parse_type(d) && add(d, ")");
}

static bool parse_delegate(struct d *d)
{
	size_t modifiers = d->len, function;

	parse_modifiers(d);
	function = d->len;
	if (!(*d->p == 'Q' ? follow(d, parse_function) : parse_function(d)) || !add(d, "delegate"))
		return fail(d);
	rotate(d, modifiers, function);
	return !d->failed;
}

static bool parse_array(struct d *d)
{
	const char *digits = d->p;
	size_t len = strspn(digits, "0123456789");

	d->p += len;
	return parse_type(d) && add(d, "[") && add_n(d, digits, len) && add(d, "]");
}

static bool parse_map(struct d *d)
{
	size_t key = d->len, value;

	if (!add(d, "[") || !parse_type(d) || !add(d, "]"))
		return false;
	value = d->len;
	if (!parse_type(d))
		return false;
	rotate(d, key, value);
	return !d->failed;
}

static bool parse_tuple(struct d *d)
{
	size_t count;

	if (!parse_number(d, &count) || !add(d, "Tuple!("))
		return false;
	for (size_t i = 0; i < count; i++)
		if ((i && !add(d, ", ")) || !parse_type(d))
			return false;
	return add(d, ")");
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

	if (take(d, "zi"))
		return add(d, "cent");
	if (take(d, "zk"))
		return add(d, "ucent");
	if (c >= sizeof(names) / sizeof(names[0]) || !names[c])
		return fail(d);
	d->p++;
	return add(d, names[c]);
}

static bool parse_type_here(struct d *d)
{
	if (take(d, "O"))
		return parse_wrapped(d, "shared(");
	if (take(d, "x"))
		return parse_wrapped(d, "const(");
	if (take(d, "y"))
		return parse_wrapped(d, "immutable(");
	if (take(d, "Ng"))
		return parse_wrapped(d, "inout(");
	if (take(d, "Nh"))
		return parse_wrapped(d, "__vector(");
	if (take(d, "Nn"))
		return add(d, "typeof(*null)");
	if (take(d, "A"))
		return parse_type(d) && add(d, "[]");
	if (take(d, "G"))
		return parse_array(d);
	if (take(d, "H"))
		return parse_map(d);
	if (take(d, "P"))
		return is_call_convention(d) ? parse_function(d) && add(d, "function") : parse_type(d) && add(d, "*");
	if (is_call_convention(d))
		return parse_function(d) && add(d, "function");
	if (*d->p && strchr("ICSET", *d->p)) {
		d->p++;
		return parse_qualified(d, false);
	}
	if (take(d, "D"))
		return parse_delegate(d);
	if (take(d, "B"))
		return parse_tuple(d);
	if (*d->p == 'Q')
		return follow(d, parse_type);
	return parse_basic(d);
}

static bool parse_type(struct d *d)
{
	bool ok = enter(d) && parse_type_here(d);

	d->depth--;
	return ok || fail(d);
}

/* Values of template arguments. */

static bool parse_integer(struct d *d, char type)
{
	const char *digits = d->p;
	size_t len = strspn(digits, "0123456789");
	char text[16];
	unsigned long value = strtoul(digits, NULL, 10);

	if (len == 0)
		return fail(d);
	d->p += len;
	if (type == 'b')
		return add(d, value ? "true" : "false");
	if (type == 'a' || type == 'u' || type == 'w') {
		if (type == 'a' && value >= ' ' && value < 0x7f)
			snprintf(text, sizeof(text), "'%c'", (char)value);
		else
			snprintf(text, sizeof(text),
				 type == 'a'   ? "'\\x%02x'"
				 : type == 'u' ? "'\\u%04x'"
					       : "'\\U%08x'",
				 (unsigned)value);
		return add(d, text);
	}
	add_n(d, digits, len);
	return add(d, type == 'h' || type == 't' || type == 'k' ? "u" : type == 'l' ? "L" : type == 'm' ? "uL" : "");
}

static bool parse_real(struct d *d)
{
	size_t len;

	if (take(d, "NAN"))
		return add(d, "NaN");
	if (take(d, "INF"))
		return add(d, "Inf");
	if (take(d, "NINF"))
		return add(d, "-Inf");
	if (take(d, "N"))
		add(d, "-");
	len = strspn(d->p, "0123456789ABCDEF");
	if (len == 0)
		return fail(d);
	add(d, "0x");
	add_n(d, d->p, 1);
	add(d, ".");
	add_n(d, d->p + 1, len - 1);
	d->p += len;
	if (!take(d, "P"))
		return fail(d);
	add(d, "p");
	if (take(d, "N"))
		add(d, "-");
	len = strspn(d->p, "0123456789");
	add_n(d, d->p, len);
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
	return add(d, text);
}

static bool parse_string(struct d *d, char type)
{
	size_t count;
	unsigned c;
	int len;

	if (!parse_number(d, &count) || !take(d, "_") || !add(d, "\""))
		return fail(d);
	for (size_t i = 0; i < count; i++) {
		if (!isxdigit((unsigned char)d->p[0]) || sscanf(d->p, "%2x%n", &c, &len) != 1 || len != 2 ||
		    !add_char(d, c))
			return fail(d);
		d->p += 2;
	}
	add(d, "\"");
	return type == 'a' ? !d->failed : add_n(d, &type, 1);
}

/* "[1, 2]" and "[1:2, 3:4]", and the same in parentheses for the fields of a struct. */
static bool parse_list(struct d *d, const char *brackets, bool pairs)
{
	size_t count;

	if (!parse_number(d, &count) || !add_n(d, brackets, 1))
		return fail(d);
	for (size_t i = 0; i < count; i++) {
		if (i)
			add(d, ", ");
		if (!parse_value(d, '\0') || (pairs && (!add(d, ":") || !parse_value(d, '\0'))))
			return fail(d);
	}
	return add_n(d, brackets + 1, 1);
}

static bool parse_value_here(struct d *d, char type)
{
	if (take(d, "n"))
		return add(d, "null");
	if (take(d, "N"))
		return add(d, "-") && parse_integer(d, type);
	if (take(d, "i") || isdigit((unsigned char)*d->p))
		return parse_integer(d, type);
	if (take(d, "e"))
		return parse_real(d);
	if (take(d, "c"))
		return parse_real(d) && add(d, "+") && take(d, "c") && parse_real(d) && add(d, "i");
	if (*d->p == 'a' || *d->p == 'w' || *d->p == 'd') {
		d->p++;
		return parse_string(d, d->p[-1]);
	}
	if (take(d, "A"))
		return parse_list(d, "[]", type == 'H');
	if (take(d, "S"))
		return parse_list(d, "()", false);
	if (take(d, "f"))
		return take(d, "_D") && parse_mangled(d);
	return fail(d);
}

static bool parse_value(struct d *d, char type)
{
	bool ok = enter(d) && parse_value_here(d, type);

	d->depth--;
	return ok || fail(d);
}

/* The whole. */

/* A function's parameters are part of its name, unless nothing follows: then this was the type of something else. */
static bool parse_own_parameters(struct d *d, bool with_modifiers)
{
	struct mark mark = set_mark(d);
	size_t signature;

	if (take(d, "M"))
		parse_modifiers(d);
	signature = d->len;
	if (!is_call_convention(d) || !parse_signature(d) || !*d->p || *d->p == '.')
		return go_back(d, &mark);
	rotate(d, mark.len, signature);
	if (!with_modifiers)
		d->len -= signature - mark.len;
	return !d->failed;
}

static bool parse_qualified(struct d *d, bool with_modifiers)
{
	bool ok = enter(d);

	for (unsigned n = 0; ok; n++) {
		if (n)
			add(d, ".");
		while (*d->p == '0') /* nameless */
			d->p++;
		ok = parse_symbol_name(d);
		if (ok && (*d->p == 'M' || is_call_convention(d)))
			ok = parse_own_parameters(d, with_modifiers);
		if (!is_symbol_name(d))
			break;
	}
	d->depth--;
	return ok || fail(d);
}

/* What follows "_D": the type of a variable, or what a function returns, is not shown. */
static bool parse_mangled(struct d *d)
{
	size_t len;

	if (!parse_qualified(d, true))
		return false;
	if (take(d, "Z"))
		return true;
	len = d->len;
	if (!parse_type(d))
		return false;
	d->len = len;
	return true;
}

/* "_D1a1fFZv.part.0" is a piece of the function that the compiler has set apart. */
static bool parse_clone(struct d *d)
{
	return !*d->p || (*d->p == '.' && add(d, " [clone ") && add(d, d->p) && add(d, "]"));
}

char *demangle_d(const char *name, size_t limit)
{
	struct d d = {.start = name, .p = name, .limit = limit};

	if (strcmp(name, "_Dmain") == 0)
		return strdup("D main");
	if (!take(&d, "_D") || !is_symbol_name(&d) || !parse_mangled(&d) || !parse_clone(&d) || !d.len) {
		vec_deinit(&d);
		return NULL;
	}
	d.data[d.len] = '\0';
	return d.data;
}
