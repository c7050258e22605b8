/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_D_PARSER_H
#define STAKEOUT_SYMBOL_D_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"

/* What the parts of the demangler of D names share: demangle_d.c has names, d_types.c and d_values.c what they say. */
struct d {
	const char *start; /* of the mangled name */
	const char *p;
	const char *reference; /* the back reference being followed: references inside its target must come before it */
	VEC_FIELDS(char);
	size_t limit;
	unsigned depth;
	unsigned steps;
	bool failed;
	bool full; /* failed for lack of room */
};

/* Once something has failed, all of them do nothing and return false. */
bool d_fail(struct d *d);
bool d_add(struct d *d, const char *text);
bool d_add_n(struct d *d, const char *text, size_t len);

/* Puts what was written from `mid` on before what was written from `at` on. */
void d_rotate(struct d *d, size_t at, size_t mid);

/* Counts a step and a level of depth; the caller takes one off d->depth when it is done, also after false. */
bool d_enter(struct d *d);

/* Skips the text if it is next. */
bool d_take(struct d *d, const char *text);

bool d_number(struct d *d, size_t *out);
bool d_is_function(const struct d *d); /* a calling convention is next: a function's type starts with it */

/* Parses at the place that a back reference points to. */
bool d_follow(struct d *d, bool (*parse)(struct d *d));

/* Each writes what it is named after. */
bool d_qualified(struct d *d, bool with_modifiers);
bool d_mangled(struct d *d); /* what follows "_D" */
bool d_type(struct d *d);
bool d_modifiers(struct d *d);        /* " const" and the like, after a function */
bool d_signature(struct d *d);        /* "(int, char)" */
bool d_value(struct d *d, char type); /* `type`: first letter of the value's type */

#endif
