/* SPDX-License-Identifier: MIT */
#include "symbol/source_symtab.h"

static bool give(const struct symbol *symbol, struct calls *out)
{
	struct call call = {
		.linkage = symbol->name,
		.linkage_len = symbol->name_len,
		.source = symbol->source,
		.own = symbol->own,
		.plt = symbol->source == SYMBOL_PLT,
		.start = symbol->start,
		.has_start = true,
	};

	out->len = 0;
	return vec_push(out, call);
}

static bool find(void *source, uint64_t vaddr, struct calls *out)
{
	struct symbol symbol;

	return symtab_find(source, vaddr, &symbol) && give(&symbol, out);
}

static void destroy(void *source)
{
	symtab_destroy(source);
}

const struct source_ops symtab_source_ops = {.find = find, .destroy = destroy};

static bool find_cached(void *source, uint64_t vaddr, struct calls *out)
{
	struct symbol symbol;

	return code_cache_symbol(source, vaddr, &symbol) && give(&symbol, out);
}

static void leave(void *source)
{
}

const struct source_ops cached_symtab_source_ops = {.find = find_cached, .destroy = leave};
