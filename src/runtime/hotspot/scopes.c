/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/scopes.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "runtime/hotspot/method.h"

enum {
	MAX_PCS = 1 << 20,    /* bytes of the table of addresses */
	MAX_SCOPE = 64,       /* bytes of a scope that are read: three numbers */
	MAX_METADATA = 1 << 16,
	MAX_ORIG_PC = 1 << 20,
	C2_LEVEL = 4,
	EXCLUDES_ZERO_SINCE = 20,
};

/* The parts of a compiled method that describe its code. */
struct parts {
	uint64_t pcs, pcs_end;
	uint64_t scopes;
	uint64_t metadata;
};

static bool get(const struct code_cache *cache, const struct blob *blob, enum hotspot_fact fact, uint64_t *out)
{
	return layout_read(cache->layout, cache->pages, blob->start, fact, out);
}

/* An offset from `base`; those of a blob stay in it. */
static bool at_offset(const struct code_cache *cache, const struct blob *blob, enum hotspot_fact fact, uint64_t base,
		      uint64_t *out)
{
	if (!get(cache, blob, fact, out) || *out > MAX_PCS * UINT64_C(16))
		return false;
	*out += base;
	return true;
}

static bool find_metadata(const struct code_cache *cache, const struct blob *blob, uint64_t *out)
{
	uint64_t relocations;

	if (!layout_has(cache->layout, HS_BLOB_MUTABLE_DATA))
		return at_offset(cache, blob, HS_NM_METADATA_OFFSET, blob->start, out);
	if (!get(cache, blob, HS_BLOB_MUTABLE_DATA, out) || !get(cache, blob, HS_BLOB_RELOCATION_SIZE, &relocations))
		return false;
	*out += relocations;
	return relocations <= MAX_PCS;
}

static bool find_parts(const struct code_cache *cache, const struct blob *blob, struct parts *out)
{
	const struct layout *l = cache->layout;
	uint64_t base = blob->start;
	bool is_apart = layout_has(l, HS_NM_IMMUTABLE_DATA);

	if (!find_metadata(cache, blob, &out->metadata) || (is_apart && !get(cache, blob, HS_NM_IMMUTABLE_DATA, &base)))
		return false;
	if (!at_offset(cache, blob, HS_NM_SCOPES_PCS_OFFSET, base, &out->pcs))
		return false;
	if (layout_has(l, HS_NM_SCOPES_DATA_BEGIN) ? !get(cache, blob, HS_NM_SCOPES_DATA_BEGIN, &out->scopes)
						   : !at_offset(cache, blob, HS_NM_SCOPES_DATA_OFFSET, base, &out->scopes))
		return false;
	if (is_apart)
		out->pcs_end = out->scopes;
	else if (!at_offset(cache, blob, HS_NM_DEPENDENCIES_OFFSET, base, &out->pcs_end))
		return false;
	return out->pcs < out->pcs_end && out->pcs_end - out->pcs <= MAX_PCS;
}

/*
 * The entry for the pc, else the nearest behind it: entries are for the ends of calls, and what is done before these is
 * theirs. The first and the last of the table are marks. *scope is 0 when there is none: a call that tells nothing of its
 * caller, in the slow paths behind the method's own code.
 */
static bool find_scope(const struct code_cache *cache, const struct blob *blob, const struct parts *parts, uint64_t pc,
		       uint64_t *scope, bool *approximate)
{
	uint64_t size = cache->layout->facts[HS_SIZE_PC_DESC], n = (parts->pcs_end - parts->pcs) / size, at, offset;
	int64_t want = (int64_t)(pc - blob->code_begin), best = -1;
	_cleanup_free_ uint8_t *table = malloc(n * size + 1);

	if (!table || !pages_read(cache->pages, parts->pcs, table, n * size))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		if (!layout_get(cache->layout, table + i * size, size, HS_PC_DESC_PC_OFFSET, &at) ||
		    !layout_get(cache->layout, table + i * size, size, HS_PC_DESC_SCOPE_OFFSET, &offset))
			return false;
		if ((int64_t)at < want || !offset || at > blob->size || (best >= 0 && (int64_t)at >= best))
			continue;
		best = (int64_t)at;
		*scope = offset;
	}
	if (best < 0)
		*scope = 0;
	*approximate = best != want;
	return true;
}

/* The method that a scope names by its number, from 1. */
static bool read_method(const struct code_cache *cache, const struct parts *parts, uint32_t index, uint64_t *out)
{
	return index && index <= MAX_METADATA && pages_read_word(cache->pages, parts->metadata + 8 * ((uint64_t)index - 1), out) &&
	       *out && *out % 8 == 0;
}

/* Numbers are as long as they are: what lies behind the last bytes of a blob need not be readable. */
static bool read_scope(const struct code_cache *cache, const struct parts *parts, uint64_t offset, uint32_t numbers[3])
{
	bool excludes_zero = cache->layout->facts[HS_FEATURE] >= EXCLUDES_ZERO_SINCE;
	uint64_t start = parts->scopes + offset;
	size_t len = PAGES_SIZE - start % PAGES_SIZE;
	uint8_t bytes[MAX_SCOPE];

	len = len < MAX_SCOPE ? len : MAX_SCOPE;
	for (;; len = MAX_SCOPE) {
		struct cursor c = cursor_init(bytes, len);

		if (!pages_read(cache->pages, start, bytes, len))
			return false;
		for (int i = 0; i < 3; i++)
			numbers[i] = unsigned5_read(&c, excludes_zero);
		if (!c.bad || len == MAX_SCOPE)
			return !c.bad;
	}
}

static bool read_chain(const struct code_cache *cache, const struct parts *parts, uint64_t offset, struct scopes *out)
{
	while (offset) {
		uint32_t numbers[3]; /* the caller's scope, the method, and the bytecode + 1 */
		struct scope *scope = &out->data[out->len];

		if (out->len == SCOPES_MAX || offset > MAX_PCS * UINT64_C(16) || !read_scope(cache, parts, offset, numbers) ||
		    !read_method(cache, parts, numbers[1], &scope->method))
			return false;
		if (numbers[0] >= offset || numbers[2] > UINT16_MAX + 1)
			return false;
		scope->bci = (int32_t)numbers[2] - 1;
		offset = numbers[0];
		out->len++;
	}
	return out->len;
}

bool scopes_find(struct code_cache *cache, const struct blob *blob, uint64_t pc, struct scopes *out)
{
	struct parts parts;
	uint64_t offset, level;

	*out = (struct scopes){0};
	if (!find_parts(cache, blob, &parts) || !get(cache, blob, HS_NM_COMP_LEVEL, &level) ||
	    !find_scope(cache, blob, &parts, pc, &offset, &out->approximate))
		return false;
	out->tier = level >= C2_LEVEL ? "C2" : "C1";
	if (!offset) {
		out->data[0].bci = INT32_MAX;
		out->len = 1;
		return scopes_method(cache, blob, &out->data[0].method);
	}
	if (!read_chain(cache, &parts, offset, out))
		return false;
	if (out->approximate) { /* only what was compiled is certain then, and not which of what was inlined is executed */
		out->data[0] = out->data[out->len - 1];
		out->len = 1;
	}
	return true;
}

bool scopes_is_deoptimized(struct code_cache *cache, const struct blob *blob, uint64_t pc, uint64_t *slot)
{
	uint64_t handler;

	if (!layout_has(cache->layout, HS_NM_ORIG_PC_OFFSET))
		return false;
	if (layout_has(cache->layout, HS_NM_DEOPT_HANDLER) ? !get(cache, blob, HS_NM_DEOPT_HANDLER, &handler)
							   : !at_offset(cache, blob, HS_NM_DEOPT_HANDLER_OFFSET, blob->start, &handler))
		return false;
	return pc == handler && get(cache, blob, HS_NM_ORIG_PC_OFFSET, slot) && *slot <= MAX_ORIG_PC;
}

bool scopes_method(struct code_cache *cache, const struct blob *blob, uint64_t *method)
{
	return get(cache, blob, HS_NM_METHOD, method) && *method;
}
