/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/symbol.h"

#include <string.h>

enum { SLOT = 8 }; /* of the constant pool */

bool symbol_read(const struct layout *layout, struct pages *pages, uint64_t symbol, struct symbol_text *out)
{
	uint64_t len;

	if (!symbol)
		return false;
	if (layout_has(layout, HS_SYMBOL_LENGTH)) {
		if (!layout_read(layout, pages, symbol, HS_SYMBOL_LENGTH, &len))
			return false;
		len &= 0xffff;
	} else {
		if (!layout_read(layout, pages, symbol, HS_SYMBOL_LENGTH_AND_REFCOUNT, &len))
			return false;
		len = len >> 16 & 0xffff;
	}
	out->len = len < SYMBOL_MAX ? (size_t)len : SYMBOL_MAX;
	out->bytes[out->len] = '\0';
	return out->len && pages_read(pages, symbol + layout_field(layout, HS_SYMBOL_BODY).offset, out->bytes, out->len) &&
	       !memchr(out->bytes, '\0', out->len);
}

/* The lowest bit of a slot is a mark. */
bool symbol_read_constant(const struct layout *layout, struct pages *pages, uint64_t pool, uint64_t index,
			  struct symbol_text *out)
{
	uint64_t symbol;

	return index && pages_read_word(pages, pool + layout->facts[HS_SIZE_CONSTANT_POOL] + SLOT * index, &symbol) &&
	       symbol_read(layout, pages, symbol & ~UINT64_C(1), out);
}
