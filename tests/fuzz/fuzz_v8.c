/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "runtime/v8/frame.h"
#include "runtime/v8/position.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * The input is memory as it was recorded of a process (tests/fuzz/make-v8-seeds): the facts of its V8, how many frames there
 * are and what they refer to, then pieces of its heap. All that the readers tell must be within their bounds.
 */
enum { MAX_FRAMES = 64, PIECE = 512 };

static void check_text(const char *text)
{
	if (strnlen(text, HEAP_TEXT + 1) > HEAP_TEXT)
		abort();
}

static void look_at_call(const struct heap *heap, const struct v8_place *place, const struct v8_call *call)
{
	struct js_frame frame;

	if (!js_frame_read(heap, place, call, &frame))
		return;
	check_text(frame.name);
	check_text(frame.file);
	if (!frame.name[0] || (frame.line && !frame.file[0]))
		abort();
}

static void look_at(const struct heap *heap, const struct v8_place *place)
{
	struct v8_calls calls;

	if (!v8_place_calls(heap, place, &calls))
		return;
	if (!calls.len || calls.len > TRANSLATION_FRAMES)
		abort();
	for (size_t i = 0; i < calls.len; i++)
		look_at_call(heap, place, &calls.data[i]);
}

static void look(struct cursor *c, const struct v8_layout *layout)
{
	struct v8_place places[MAX_FRAMES];
	struct pages pages;
	const struct heap heap = {.layout = layout, .pages = &pages};
	size_t n = cursor_u8(c) % MAX_FRAMES;
	struct ask_range range = {.len = PIECE, .got = PIECE};
	struct ask ask = {.data = &range, .len = 1};

	for (size_t i = 0; i < n; i++) {
		uint8_t flags = cursor_u8(c);

		places[i] = (struct v8_place){.kind = V8_NO_KIND, .is_builtin = flags & 1, .is_exact = flags & 2};
		places[i].function = cursor_u64(c);
		places[i].bytecode = cursor_u64(c);
		places[i].offset = cursor_u64(c);
		places[i].pc = cursor_u64(c);
	}
	pages_init(&pages, 0);
	while (cursor_left(c) >= sizeof(uint64_t) + PIECE) {
		range.address = cursor_u64(c) & ~(uint64_t)(PIECE - 1);
		range.data = (uint8_t *)c->p; /* nobody writes there */
		cursor_skip(c, PIECE);
		if (!pages_take(&pages, &ask))
			abort();
	}
	for (size_t i = 0; i < n && !c->bad; i++)
		look_at(&heap, &places[i]);
	pages_deinit(&pages);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_init(data, size), table = cursor_init(data, size);
	uint64_t facts[V8_FACT_COUNT];
	struct v8_layout layout;
	uint32_t position;

	position_find(&table, size ? data[0] : 0, &position);
	for (size_t i = 0; i < V8_FACT_COUNT; i++)
		facts[i] = cursor_u64(&c);
	v8_layout_load(facts, V8_FACT_COUNT, &layout);
	if (!c.bad && v8_layout_check(&layout, NULL) == 0)
		look(&c, &layout);
	return 0;
}
