/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/objects.h"

enum { COMPACT_SHIFT = 42 }; /* where the class is in the first word of an object that has a compact header */

static bool read_u32(struct pages *pages, uint64_t address, uint32_t *out)
{
	uint8_t b[4];

	if (!pages_read(pages, address, b, sizeof(b)))
		return false;
	*out = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
	return true;
}

bool java_class_of(const struct layout *layout, struct pages *pages, uint32_t header, uint64_t object, uint64_t *out)
{
	uint32_t narrow;

	if (header == 16)
		return pages_read_word(pages, object + 8, out);
	if (!layout_has(layout, HS_NARROW_KLASS_BASE) || !layout_has(layout, HS_NARROW_KLASS_SHIFT))
		return false;
	if (header == 8) {
		if (!pages_read_word(pages, object, out))
			return false;
		narrow = (uint32_t)(*out >> COMPACT_SHIFT);
	} else if (!read_u32(pages, object + 8, &narrow)) {
		return false;
	}
	*out = layout->facts[HS_NARROW_KLASS_BASE] + ((uint64_t)narrow << (layout->facts[HS_NARROW_KLASS_SHIFT] & 31));
	return true;
}

bool java_reference(const struct layout *layout, struct pages *pages, uint64_t address, bool narrow, uint64_t *out)
{
	uint32_t compressed;

	if (!narrow)
		return pages_read_word(pages, address, out) && *out && *out % 8 == 0;
	if (!layout_has(layout, HS_NARROW_OOP_BASE) || !layout_has(layout, HS_NARROW_OOP_SHIFT) || !read_u32(pages, address, &compressed) ||
	    !compressed)
		return false;
	*out = layout->facts[HS_NARROW_OOP_BASE] + ((uint64_t)compressed << (layout->facts[HS_NARROW_OOP_SHIFT] & 31));
	return true;
}

bool java_class_name(const struct layout *layout, struct pages *pages, uint64_t class, struct symbol_text *out)
{
	uint64_t symbol;

	return layout_read(layout, pages, class, HS_KLASS_NAME, &symbol) && symbol && symbol_read(layout, pages, symbol, out) && out->len;
}
