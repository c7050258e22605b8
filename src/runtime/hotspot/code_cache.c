/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/code_cache.h"

#include <string.h>

enum {
	MAX_HOPS = 64, /* in the segment map: each leads over up to 254 segments */
	MAX_FRAME = 1 << 17, /* in words */
	FREE = 0xff,
};

/* As in the facts. */
struct heap {
	uint64_t low, high;
	uint64_t map_low, map_high;
	uint64_t log2_segment;
};

void code_cache_init(struct code_cache *cache, const struct layout *layout, struct pages *pages)
{
	*cache = (struct code_cache){.layout = layout, .pages = pages};
}

void code_cache_deinit(struct code_cache *cache)
{
	vec_deinit(&cache->blobs);
	u64map_deinit(&cache->by_start);
}

static bool find_heap(const struct code_cache *cache, uint64_t pc, struct heap *out)
{
	const uint64_t *facts = cache->layout->facts;

	for (uint64_t i = 0; i < facts[HS_NHEAPS] && i < HS_MAX_HEAPS; i++) {
		const uint64_t *f = &facts[HS_HEAPS + 5 * i];

		*out = (struct heap){.low = f[0], .high = f[1], .map_low = f[2], .map_high = f[3], .log2_segment = f[4]};
		if (pc >= out->low && pc < out->high)
			return true;
	}
	return false;
}

bool code_cache_owns(const struct code_cache *cache, uint64_t pc)
{
	struct heap heap;

	return find_heap(cache, pc, &heap);
}

/* Where the blob of a segment starts: each byte tells how far to go back, and the first segment has a 0. */
static bool find_start(struct code_cache *cache, const struct heap *heap, uint64_t pc, uint64_t *start)
{
	uint64_t segment = (pc - heap->low) >> heap->log2_segment;
	uint8_t back = FREE;

	for (int hops = 0; hops < MAX_HOPS; hops++) {
		if (segment >= heap->map_high - heap->map_low ||
		    !pages_read(cache->pages, heap->map_low + segment, &back, 1) || back == FREE || back > segment)
			return false;
		if (!back) {
			*start = heap->low + (segment << heap->log2_segment) + cache->layout->facts[HS_SIZE_HEAP_BLOCK];
			return true;
		}
		segment -= back;
	}
	return false;
}

static bool get(const struct code_cache *cache, uint64_t base, enum hotspot_fact fact, uint64_t *out)
{
	return layout_read(cache->layout, cache->pages, base, fact, out);
}

static bool read_code_range(const struct code_cache *cache, struct blob *blob)
{
	if (layout_has(cache->layout, HS_BLOB_CODE_BEGIN))
		return get(cache, blob->start, HS_BLOB_CODE_BEGIN, &blob->code_begin) &&
		       get(cache, blob->start, HS_BLOB_CODE_END, &blob->code_end);
	if (!get(cache, blob->start, HS_BLOB_CODE_OFFSET, &blob->code_begin) ||
	    !get(cache, blob->start, HS_BLOB_DATA_OFFSET, &blob->code_end))
		return false;
	blob->code_begin += blob->start;
	blob->code_end += blob->start;
	return true;
}

static bool read_name(const struct code_cache *cache, struct blob *blob)
{
	uint64_t name;

	if (!get(cache, blob->start, HS_BLOB_NAME, &name))
		return false;
	for (size_t i = 0; i < sizeof(blob->name) - 1; i++) {
		if (!pages_read(cache->pages, name + i, &blob->name[i], 1))
			return false;
		if (!blob->name[i])
			return i > 0;
	}
	return true;
}

static bool starts_with(const char *name, const char *start)
{
	return strncmp(name, start, strlen(start)) == 0;
}

static enum blob_kind kind_of(const char *name)
{
	return starts_with(name, "nmethod")          ? BLOB_COMPILED
	       : starts_with(name, "native nmethod") ? BLOB_NATIVE
	       : starts_with(name, "Interpreter")    ? BLOB_INTERPRETER
						     : BLOB_STUB;
}

/* False as well when it is not what a blob is: then nothing of it is used. */
static bool read_blob(const struct code_cache *cache, const struct heap *heap, struct blob *blob)
{
	uint64_t frame_size, complete = 0;

	if (!get(cache, blob->start, HS_BLOB_SIZE, &blob->size) ||
	    !get(cache, blob->start, HS_BLOB_FRAME_SIZE, &frame_size) || !read_code_range(cache, blob) ||
	    !read_name(cache, blob))
		return false;
	if (layout_has(cache->layout, HS_BLOB_FRAME_COMPLETE) &&
	    !get(cache, blob->start, HS_BLOB_FRAME_COMPLETE, &complete))
		return false;
	if (!blob->size || blob->size > heap->high - blob->start || blob->code_begin < blob->start ||
	    blob->code_begin > blob->code_end || blob->code_end - blob->start > blob->size)
		return false;
	blob->kind = kind_of(blob->name);
	blob->frame_size = frame_size <= MAX_FRAME ? (uint32_t)frame_size : 0; /* -1: it has none */
	blob->frame_complete = complete <= blob->size ? (uint32_t)complete : 0;
	return blob->frame_size >= 2 || (blob->kind != BLOB_COMPILED && blob->kind != BLOB_NATIVE);
}

static const struct blob *keep(struct code_cache *cache, const struct blob *blob)
{
	bool created;
	uint64_t *slot = u64map_put(&cache->by_start, blob->start, &created);

	if (!slot || !vec_push(&cache->blobs, *blob)) {
		cache->pages->no_memory = true;
		return NULL;
	}
	*slot = cache->blobs.len;
	return &cache->blobs.data[cache->blobs.len - 1];
}

static bool has_code(const struct blob *blob, uint64_t pc)
{
	return blob && pc >= blob->code_begin && pc < blob->code_end;
}

const struct blob *code_cache_find(struct code_cache *cache, uint64_t pc)
{
	struct heap heap;
	struct blob blob = {0};
	const struct blob *found;
	const uint64_t *slot;

	if (!find_heap(cache, pc, &heap) || !find_start(cache, &heap, pc, &blob.start) || blob.start >= heap.high)
		return NULL;
	slot = u64map_find(&cache->by_start, blob.start);
	if (slot && *slot)
		found = &cache->blobs.data[*slot - 1];
	else
		found = read_blob(cache, &heap, &blob) ? keep(cache, &blob) : NULL;
	return has_code(found, pc) ? found : NULL;
}
