/* SPDX-License-Identifier: MIT */
#include "runtime/v8/names.h"

#include "base/hash.h"

bool v8_names_init(struct v8_names *named)
{
	*named = (struct v8_names){.arena = arena_create()};
	return named->arena;
}

void v8_names_deinit(struct v8_names *named)
{
	vec_deinit(&named->frames);
	u64map_deinit(&named->known);
	arena_destroy(named->arena);
}

static bool is_same_frame(const struct frame *a, const struct frame *b)
{
	return a->kind == b->kind && a->symbol == b->symbol && a->file == b->file && a->line == b->line &&
	       a->line_kind == b->line_kind && a->tier == b->tier && a->inlined == b->inlined;
}

static uint64_t hash_frame(const struct frame *frame)
{
	const uint64_t parts[] = {(uint64_t)frame->kind, (uintptr_t)frame->symbol, (uintptr_t)frame->file,
				  frame->line,           (uint64_t)frame->line_kind, (uintptr_t)frame->tier, frame->inlined};
	return hash_bytes(HASH_SEED, parts, sizeof(parts));
}

/* Strings are interned: the same ones have the same address. */
static enum v8_naming add_frame(struct v8_names *named, const struct frame *frame, struct v8_named *out)
{
	bool created;
	uint64_t *slot = u64map_put(&named->known, hash_frame(frame), &created);

	if (!slot)
		return V8_NO_MEMORY;
	if (!*slot || !is_same_frame(&named->frames.data[*slot - 1], frame)) {
		if (!vec_push(&named->frames, *frame))
			return V8_NO_MEMORY;
		*slot = named->frames.len;
	}
	out->data[out->len++] = (uint32_t)*slot - 1;
	return V8_NAMED;
}

static enum v8_naming add_function(struct v8_names *named, const struct js_frame *js, bool inlined, struct v8_named *out)
{
	const struct frame frame = {
		.kind = FRAME_KIND_JS,
		.inlined = inlined,
		.symbol = arena_intern(named->arena, js->name),
		.symbol_source = SYMBOL_RUNTIME,
		.file = js->file[0] ? arena_intern(named->arena, js->file) : NULL,
		.line = js->line,
		.line_kind = js->line ? js->line_kind : LINE_CURRENT,
		.tier = js->tier,
	};

	return frame.symbol && (!js->file[0] || frame.file) ? add_frame(named, &frame, out) : V8_NO_MEMORY;
}

static enum v8_naming add_stub(struct v8_names *named, const char *kind, struct v8_named *out)
{
	const struct frame frame = {.kind = FRAME_KIND_STUB, .symbol = kind, .symbol_source = SYMBOL_RUNTIME};

	return add_frame(named, &frame, out);
}

/* All or nothing. What was inlined and has no name for programs is left out. */
static enum v8_naming add_calls(struct v8_names *named, const struct heap *heap, const struct v8_place *place,
				const struct v8_calls *calls, struct v8_named *out)
{
	out->len = 0;
	for (size_t i = 0; i < calls->len; i++) {
		bool inlined = i + 1 < calls->len;
		struct js_frame frame;

		if (!js_frame_read(heap, place, &calls->data[i], &frame))
			return V8_NOT_NAMED;
		if (frame.is_stub && inlined)
			continue;
		if (frame.is_stub)
			return place->kind == V8_NO_KIND ? add_stub(named, "BuiltinFrame", out) : V8_NOT_NAMED;
		if (add_function(named, &frame, inlined, out) != V8_NAMED)
			return V8_NO_MEMORY;
	}
	return V8_NAMED;
}

/* The function of the frame itself, if what was inlined cannot be named. */
static enum v8_naming add_functions(struct v8_names *named, const struct heap *heap, const struct v8_place *place,
				    struct v8_named *out)
{
	enum v8_naming naming;
	struct v8_calls calls;

	if (!v8_place_is_function(place) || !v8_place_calls(heap, place, &calls))
		return V8_NOT_NAMED;
	naming = add_calls(named, heap, place, &calls, out);
	if (naming != V8_NOT_NAMED || calls.len == 1)
		return naming;
	calls.data[0] = (struct v8_call){.shared = calls.data[calls.len - 1].shared};
	calls.len = 1;
	return add_calls(named, heap, place, &calls, out);
}

enum v8_naming v8_name_place(struct v8_names *named, const struct heap *heap, const struct v8_place *place,
			     struct v8_named *out)
{
	enum v8_naming naming = add_functions(named, heap, place, out);

	if (naming != V8_NOT_NAMED)
		return naming;
	out->len = 0;
	if (place->kind == V8_AT_EDGE)
		return add_stub(named, "<entry or return of a function>", out);
	if (place->kind != V8_NO_KIND)
		return add_stub(named, v8_frame_kind(heap->layout, place->kind), out);
	return V8_NOT_NAMED;
}
