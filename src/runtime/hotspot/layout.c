/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/layout.h"

#include <string.h>

enum {
	MAX_OFFSET = 1 << 16, /* no structure of the virtual machine is larger */
	SIZE_SHIFT = 32,
	SIGN_SHIFT = 40,
	MAX_TYPE = 4096,
};

uint64_t layout_pack_field(uint64_t offset, unsigned size, bool is_signed)
{
	if (offset >= MAX_OFFSET || (size != 1 && size != 2 && size != 4 && size != 8))
		return HS_ABSENT;
	return offset | (uint64_t)size << SIZE_SHIFT | (uint64_t)is_signed << SIGN_SHIFT;
}

struct field layout_field(const struct layout *layout, enum hotspot_fact fact)
{
	uint64_t packed = layout->facts[fact];

	return (struct field){
		.offset = (uint32_t)packed,
		.size = (uint8_t)(packed >> SIZE_SHIFT),
		.is_signed = packed >> SIGN_SHIFT & 1,
	};
}

void layout_load(struct layout *layout, const uint64_t *facts, uint32_t n)
{
	for (uint32_t i = 0; i < HS_FACT_COUNT; i++)
		layout->facts[i] = i < n ? facts[i] : HS_ABSENT;
}

void layout_let_heaps_grow(struct layout *layout)
{
	for (uint64_t i = 0; i < layout->facts[HS_NHEAPS] && i < HS_MAX_HEAPS; i++) {
		uint64_t *heap = &layout->facts[HS_HEAPS + 5 * i], *limits = &layout->facts[HS_HEAP_LIMITS + 2 * i];

		if (limits[0] != HS_ABSENT && limits[0] > heap[1])
			heap[1] = limits[0];
		if (limits[1] != HS_ABSENT && limits[1] > heap[3])
			heap[3] = limits[1];
	}
}

/* A saved snapshot may say anything. */
static bool is_sane_field(const struct layout *layout, enum hotspot_fact fact)
{
	struct field field = layout_field(layout, fact);

	return !layout_has(layout, fact) ||
	       layout_pack_field(field.offset, field.size, field.is_signed) == layout->facts[fact];
}

static bool has_all(const struct layout *layout, const enum hotspot_fact *facts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!layout_has(layout, facts[i]))
			return false;
	return true;
}

#define HAS_ALL(layout, ...)                                                                                           \
	has_all(layout, (const enum hotspot_fact[]){__VA_ARGS__},                                                      \
		sizeof((const enum hotspot_fact[]){__VA_ARGS__}) / sizeof(enum hotspot_fact))

static bool has_code(const struct layout *l)
{
	return HAS_ALL(l, HS_CALL_RETURN, HS_NHEAPS, HS_SIZE_HEAP_BLOCK, HS_BLOB_NAME, HS_BLOB_SIZE, HS_BLOB_FRAME_SIZE) &&
	       (HAS_ALL(l, HS_BLOB_CODE_BEGIN, HS_BLOB_CODE_END) || HAS_ALL(l, HS_BLOB_CODE_OFFSET, HS_BLOB_DATA_OFFSET));
}

static bool has_scopes(const struct layout *l)
{
	if (!HAS_ALL(l, HS_SIZE_PC_DESC, HS_PC_DESC_PC_OFFSET, HS_PC_DESC_SCOPE_OFFSET, HS_NM_SCOPES_PCS_OFFSET, HS_NM_COMP_LEVEL))
		return false;
	if (layout_has(l, HS_NM_IMMUTABLE_DATA))
		return HAS_ALL(l, HS_NM_SCOPES_DATA_OFFSET) &&
		       (layout_has(l, HS_NM_METADATA_OFFSET) || HAS_ALL(l, HS_BLOB_MUTABLE_DATA, HS_BLOB_RELOCATION_SIZE));
	return HAS_ALL(l, HS_NM_DEPENDENCIES_OFFSET, HS_NM_METADATA_OFFSET) &&
	       (layout_has(l, HS_NM_SCOPES_DATA_OFFSET) || layout_has(l, HS_NM_SCOPES_DATA_BEGIN));
}

static bool has_methods(const struct layout *l)
{
	return HAS_ALL(l, HS_SIZE_CONST_METHOD, HS_SIZE_CONSTANT_POOL, HS_METHOD_CONST, HS_CONST_CONSTANTS, HS_CONST_CODE_SIZE,
		       HS_CONST_NAME_INDEX, HS_POOL_HOLDER, HS_POOL_LENGTH, HS_KLASS_NAME, HS_SYMBOL_BODY, HS_NM_METHOD) &&
	       (layout_has(l, HS_SYMBOL_LENGTH) || layout_has(l, HS_SYMBOL_LENGTH_AND_REFCOUNT));
}

static bool has_sane_values(const struct layout *l)
{
	for (unsigned fact = HS_BLOB_NAME; fact <= HS_LAST_FIELD; fact++)
		if (!is_sane_field(l, fact))
			return false;
	for (unsigned fact = HS_THREAD_PENDING; fact <= HS_LAST_LOCK_FIELD; fact++)
		if (!is_sane_field(l, fact))
			return false;
	if (!is_sane_field(l, HS_THREAD_OS) || !is_sane_field(l, HS_OS_THREAD_ID))
		return false;
	for (unsigned fact = HS_SIZE_HEAP_BLOCK; fact <= HS_SIZE_PC_DESC; fact++)
		if (!l->facts[fact] || l->facts[fact] > MAX_TYPE)
			return false;
	if (!l->facts[HS_NHEAPS] || l->facts[HS_NHEAPS] > HS_MAX_HEAPS)
		return false;
	for (uint64_t i = 0; i < l->facts[HS_NHEAPS]; i++) {
		const uint64_t *heap = &l->facts[HS_HEAPS + 5 * i];

		if (heap[0] >= heap[1] || heap[2] >= heap[3] || heap[4] < 3 || heap[4] > 16)
			return false;
	}
	return true;
}

const char *layout_problem(const struct layout *layout)
{
	if (!has_code(layout) || !has_scopes(layout) || !has_methods(layout) || !layout_has(layout, HS_FEATURE))
		return "its libjvm.so does not tell all of its layout";
	if (!has_sane_values(layout))
		return "the layout that its libjvm.so tells of cannot be right";
	return NULL;
}

static uint64_t get(const uint8_t *bytes, struct field field)
{
	uint64_t value = 0, sign = UINT64_C(1) << (8 * field.size - 1);

	for (unsigned i = 0; i < field.size; i++)
		value |= (uint64_t)bytes[i] << 8 * i;
	if (field.is_signed && (value & sign))
		value |= ~(sign | (sign - 1));
	return value;
}

bool layout_read(const struct layout *layout, struct pages *pages, uint64_t base, enum hotspot_fact fact, uint64_t *out)
{
	struct field field = layout_field(layout, fact);
	uint8_t bytes[8];

	if (!layout_has(layout, fact) || !pages_read(pages, base + field.offset, bytes, field.size))
		return false;
	*out = get(bytes, field);
	return true;
}

bool layout_get(const struct layout *layout, const uint8_t *bytes, size_t len, enum hotspot_fact fact, uint64_t *out)
{
	struct field field = layout_field(layout, fact);

	if (!layout_has(layout, fact) || field.offset > len || field.size > len - field.offset)
		return false;
	*out = get(bytes + field.offset, field);
	return true;
}
