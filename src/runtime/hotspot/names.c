/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/names.h"

#include <string.h>

#include "base/hash.h"

enum { MAX_KEPT = 1 << 20 }; /* frames with names */

void java_names_init(struct java_names *names, struct code_cache *cache, struct methods *methods, struct arena *arena)
{
	*names = (struct java_names){.cache = cache, .methods = methods, .arena = arena};
}

void java_names_deinit(struct java_names *names)
{
	u64map_deinit(&names->kept);
}

static bool name_method(struct java_names *names, uint64_t address, int32_t bci, const char *tier, struct java_named *out)
{
	const struct method *method = methods_find(names->methods, address);
	struct frame *frame = &out->data[out->len];

	if (!method)
		return false;
	*frame = (struct frame){
		.kind = FRAME_KIND_JAVA,
		.symbol = method->name,
		.symbol_source = SYMBOL_RUNTIME,
		.file = method->file,
		.tier = method->is_native ? "native" : tier,
	};
	out->len++;
	return method->is_native || methods_find_line(names->methods, method, bci, &frame->line);
}

static bool name_interpreted(struct java_names *names, const struct java_place *place, struct java_named *out)
{
	const struct method *method = methods_find(names->methods, place->code);
	uint64_t bci = method ? place->place - method->bytecode : 0;
	bool is_in = method && bci < method->code_size;

	/* In a recording, bytecode of another method means that another one has this address by now. */
	if (!method || (names->cache->pages->live && !is_in && !method->is_native))
		return false;
	return name_method(names, place->code, is_in ? (int32_t)bci : INT32_MAX, "interpreted", out);
}

static bool name_compiled(struct java_names *names, const struct blob *blob, uint64_t pc, struct java_named *out)
{
	struct scopes scopes;
	bool ok = true;

	if (!scopes_find(names->cache, blob, pc, &scopes))
		return false;
	for (size_t i = 0; i < scopes.len; i++) {
		size_t n = out->len;

		ok = name_method(names, scopes.data[i].method, scopes.data[i].bci, scopes.tier, out) && ok;
		if (out->len == n)
			continue;
		out->data[n].inlined = i + 1 < scopes.len;
		if (!i && scopes.approximate)
			out->data[n].line_kind = LINE_APPROXIMATE;
	}
	if (out->len < scopes.len) /* all or nothing */
		out->len = 0;
	return ok;
}

static bool name_stub(struct java_names *names, const struct blob *blob, uint64_t pc, struct java_named *out)
{
	const char *symbol = pc == names->cache->layout->facts[HS_CALL_RETURN] ? "call_stub" : arena_intern(names->arena, blob->name);

	out->data[0] = (struct frame){.kind = FRAME_KIND_STUB, .symbol = symbol, .symbol_source = SYMBOL_RUNTIME};
	out->len = 1;
	return symbol;
}

static bool name_elsewhere(struct java_named *out)
{
	out->data[0] = (struct frame){
		.kind = FRAME_KIND_MARKER,
		.symbol = "more frames of the virtual thread, which are not on the stack",
		.symbol_source = SYMBOL_RUNTIME,
	};
	out->len = 1;
	return true;
}

/* Whether that compilation is still in the blob. */
static bool is_version(const struct java_names *names, const struct blob *blob, uint32_t version)
{
	uint64_t id;

	return !version || !layout_has(names->cache->layout, HS_NM_COMPILE_ID) ||
	       (layout_read(names->cache->layout, names->cache->pages, blob->start, HS_NM_COMPILE_ID, &id) && (uint32_t)id == version);
}

/* False when not all that tells of it is known; out->len is 0 when there is no name for it. */
static bool name_place(struct java_names *names, const struct java_place *place, struct java_named *out)
{
	const struct blob *found = code_cache_find(names->cache, place->place);
	struct blob blob;
	uint64_t method;

	out->len = 0;
	if (!code_cache_owns(names->cache, place->code))
		return name_interpreted(names, place, out);
	if (place->place == JAVA_PLACE_ELSEWHERE)
		return name_elsewhere(out);
	if (!found || found->start != place->code || !is_version(names, found, place->version))
		return false;
	blob = *found;
	switch (blob.kind) {
	case BLOB_COMPILED:
		return name_compiled(names, &blob, place->place, out);
	case BLOB_NATIVE:
		return scopes_method(names->cache, &blob, &method) && name_method(names, method, INT32_MAX, "native", out);
	default:
		return name_stub(names, &blob, place->place, out);
	}
}

bool java_names_know(struct java_names *names, const struct java_place *place)
{
	struct java_named named;

	names->cache->pages->lacks = false;
	name_place(names, place, &named);
	return !names->cache->pages->lacks;
}

/* The frames of a place that many stacks have. */
struct kept {
	struct java_place place;
	size_t len;
	struct frame data[];
};

static uint64_t hash_place(const struct java_place *place)
{
	return hash_u64(hash_u64(hash_u64(HASH_SEED, place->code), place->place), place->version);
}

static bool is_same_place(const struct java_place *a, const struct java_place *b)
{
	return a->code == b->code && a->place == b->place && a->version == b->version;
}

bool java_names_has(const struct java_names *names, const struct java_place *place)
{
	return u64map_find(&names->kept, hash_place(place));
}

void java_names_find(struct java_names *names, const struct java_place *place, struct java_named *out)
{
	bool created;
	uint64_t *slot = u64map_put(&names->kept, hash_place(place), &created);
	struct kept *kept = slot ? (struct kept *)(uintptr_t)*slot : NULL;

	if (kept && is_same_place(&kept->place, place)) {
		out->len = kept->len;
		memcpy(out->data, kept->data, kept->len * sizeof(*kept->data));
		return;
	}
	name_place(names, place, out);
	kept = slot && created && out->len <= MAX_KEPT - names->nkept ? arena_alloc(names->arena, sizeof(*kept) + out->len * sizeof(*kept->data)) : NULL;
	if (!kept)
		return;
	kept->place = *place;
	kept->len = out->len;
	names->nkept += out->len;
	memcpy(kept->data, out->data, out->len * sizeof(*kept->data));
	*slot = (uintptr_t)kept;
}
