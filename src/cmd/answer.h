/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_ANSWER_H
#define STAKEOUT_CMD_ANSWER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "target/modules.h"
#include "symbol/jit_names.h"
#include "symbol/module_symbols.h"

/*
 * What `stakeout symbolize` prints for an address: as addr2line does, byte for byte but for control characters on a
 * terminal; or a line of JSON.
 */
struct answers;

struct answer_format {
	bool addresses; /* -a */
	bool functions; /* -f */
	bool inlines;   /* -i */
	bool demangle;  /* -C */
	bool basenames; /* -s */
	bool pretty;    /* -p */
	bool json;
	bool escape;     /* show control characters in names and paths, in text, as the reports do */
	unsigned digits; /* of an address */
};

/* An address that was asked for, and where it lies. */
struct question {
	const char *text; /* as given, `len` bytes */
	size_t len;
	bool is_address; /* else the text is none: addr2line, and so the text, then answers for 0 */
	uint64_t address;
	struct module *module; /* NULL: no file is there */
	uint64_t vaddr;        /* in the module's own terms */
};

/*
 * NULL when memory is exhausted. `out` is borrowed; its errors stay in it. `symbols` must outlive the modules that are
 * asked for.
 */
struct answers *answers_create(const struct answer_format *format, const struct symbol_options *symbols,
			       struct jit_names *jit, FILE *out);
void answers_destroy(struct answers *answers);

/* Answers them in order; what that takes is done for all of them at once, on all cores. */
void answers_write(struct answers *answers, const struct question *questions, size_t n);

#endif
