/* SPDX-License-Identifier: MIT */
#include "runtime/v8/wait_frames.h"

#include <endian.h>

#include "base/hash.h"

enum {
	WORD = 8,
	TAG = 1,
	ADDRESS_BITS = 48,
	MAX_BYTES = 8 << 20,   /* that are read for a stack, */
	MAX_AGAIN = 1 << 20,   /* and once more for a frame of compiled code */
	MAX_FRAMES = 1 << 17,  /* different ones that are named */
};

static const uint64_t max_effort = UINT64_C(1) << 33; /* in all: some ten seconds */

void v8_wait_frames_init(struct v8_wait_frames *waits, const struct v8_layout *layout, struct v8_names *named)
{
	*waits = (struct v8_wait_frames){.layout = layout, .named = named, .effort = max_effort};
}

void v8_wait_frames_deinit(struct v8_wait_frames *waits)
{
	pages_deinit(&waits->pages);
	pages_deinit(&waits->again);
	line_index_deinit(&waits->lines);
	vec_deinit(&waits->frames);
	vec_deinit(&waits->shown);
	u64map_deinit(&waits->known);
}

/* The number of a word, of those that BPF reads; false: it is none of them. */
static bool find_word(uint64_t bytes, uint32_t *out)
{
	*out = (uint32_t)(bytes / WORD);
	return bytes % WORD == 0 && bytes / WORD < OFFCPU_V8_WORDS - 1;
}

/* The same below a frame pointer. */
static bool find_slot(uint64_t bytes, uint32_t *out)
{
	bytes += OFFCPU_V8_WORDS * WORD;
	*out = (uint32_t)(bytes / WORD);
	return bytes % WORD == 0 && bytes / WORD < OFFCPU_V8_WORDS;
}

bool v8_wait_frames_describe(const struct v8_layout *layout, const struct maps *maps, struct offcpu_v8 *out)
{
	const uint64_t *facts = layout->facts;
	struct v8_code_range code;
	struct offcpu_v8 v8 = {
		.map_type = (uint32_t)facts[V8_MAP_TYPE],
		.type_function_first = (uint32_t)facts[V8_TYPE_FUNCTION_FIRST],
		.type_function_last = (uint32_t)facts[V8_TYPE_FUNCTION_LAST],
		.type_shared = (uint32_t)facts[V8_TYPE_SHARED],
		.type_bytecode = (uint32_t)facts[V8_TYPE_BYTECODE],
		.kind_builtin_exit = (uint32_t)facts[V8_FRAME_BUILTIN_EXIT],
		.kind_continuation = (uint32_t)facts[V8_FRAME_JS_CONTINUATION],
		.kind_catching_continuation = (uint32_t)facts[V8_FRAME_JS_CATCHING_CONTINUATION],
	};
	bool ok = find_slot(facts[V8_FP_CONTEXT], &v8.frame_context) && find_slot(facts[V8_FP_FUNCTION], &v8.frame_function) &&
		  find_slot(facts[V8_FP_BYTECODE], &v8.frame_bytecode) &&
		  find_slot(facts[V8_FP_BYTECODE_OFFSET], &v8.frame_offset) &&
		  find_word(facts[V8_FUNCTION_SHARED], &v8.function_shared) &&
		  find_word(facts[V8_SHARED_NAME], &v8.shared_name) && find_word(facts[V8_SHARED_SCRIPT], &v8.shared_script) &&
		  v8_find_code(layout, maps, &code);

	if (!ok)
		return false;
	v8.code_start = code.start;
	v8.code_end = code.end;
	v8.has_copies = code.has_copies;
	*out = v8;
	return true;
}

static uint64_t kind_of(uint64_t place)
{
	uint64_t kind = place >> OFFCPU_V8_KIND_BIT & OFFCPU_V8_FUNCTION;

	return kind == OFFCPU_V8_FUNCTION ? V8_NO_KIND : kind == OFFCPU_V8_AT_EDGE ? V8_AT_EDGE : kind;
}

static bool is_builtin(uint64_t place)
{
	return place >> OFFCPU_V8_BUILTIN_BIT & 1;
}

static struct v8_place place_of(const struct v8_wait_frame *frame)
{
	const uint64_t offset = frame->place & ((UINT64_C(1) << OFFCPU_V8_OFFSET_BITS) - 1);

	return (struct v8_place){
		.pc = frame->pc,
		.is_builtin = is_builtin(frame->place),
		.is_exact = frame->is_exact,
		.kind = kind_of(frame->place),
		.shared = frame->code,
		.bytecode = offset ? frame->more : 0,
		.offset = offset ? (offset - 1) << 32 : 0,
	};
}

static bool read_word(struct mem *live, uint64_t address, uint64_t *out)
{
	uint64_t word;

	if (!mem_read_exact(live, address, &word, sizeof(word)))
		return false;
	*out = le64toh(word);
	return true;
}

/* Whether the process has at this instant what BPF saw. */
static bool is_known_again(const struct v8_wait_frames *waits, struct mem *live, const struct v8_wait_frame *frame)
{
	const uint64_t *facts = waits->layout->facts;
	uint64_t name, script;

	if (!frame->code)
		return true;
	return heap_is_object(frame->code) && read_word(live, frame->code - TAG + facts[V8_SHARED_NAME], &name) &&
	       read_word(live, frame->code - TAG + facts[V8_SHARED_SCRIPT], &script) &&
	       offcpu_v8_proof(name, script) == (uint32_t)(frame->place >> OFFCPU_V8_PROOF_BIT);
}

static uint64_t hash_frame(const struct v8_wait_frame *frame)
{
	const uint64_t parts[] = {frame->code, frame->place, frame->more, frame->pc, frame->is_exact};

	return hash_bytes(HASH_SEED, parts, sizeof(parts));
}

static bool is_same(const struct v8_wait_frame *a, const struct v8_wait_frame *b)
{
	return a->code == b->code && a->place == b->place && a->more == b->more && a->pc == b->pc && a->is_exact == b->is_exact;
}

static const struct v8_wait_frame *find(const struct v8_wait_frames *waits, const struct v8_wait_frame *frame)
{
	const uint64_t *slot = u64map_find(&waits->known, hash_frame(frame));

	return slot && *slot && is_same(&waits->frames.data[*slot - 1], frame) ? &waits->frames.data[*slot - 1] : NULL;
}

/* Frames of a wait have their addresses in other terms (offcpu/place.h), where that of code in no file is the lower part. */
static struct v8_wait_frame wait_frame_of(const struct raw_stack *raw, const struct runtime_frame *from)
{
	const struct raw_frame *native = from->raw < raw->len ? &raw->data[from->raw] : NULL;

	return (struct v8_wait_frame){
		.code = from->code,
		.place = from->place,
		.more = from->more,
		.pc = native && !is_builtin(from->place) ? native->pc & ((UINT64_C(1) << ADDRESS_BITS) - 1) : 0,
		.is_exact = native && !(native->flags & FRAME_RETURN_ADDRESS),
	};
}

static bool keep(struct v8_wait_frames *waits, const struct v8_named *found, struct v8_wait_frame *frame)
{
	bool ok = true;

	frame->first = (uint32_t)waits->shown.len;
	frame->n = (uint32_t)found->len;
	for (size_t i = 0; ok && i < found->len; i++)
		ok = vec_push(&waits->shown, found->data[i]);
	return ok && vec_push(&waits->frames, *frame);
}

static bool is_same_word(const struct heap *a, const struct heap *b, uint64_t object, enum v8_fact field)
{
	uint64_t first, second;

	return heap_read(a, object, field, &first) && heap_read(b, object, field, &second) && first == second;
}

/*
 * BPF knows nothing of what was inlined, so it is looked for once more: should something have moved while it was read, what
 * refers to it says so now.
 */
static bool are_calls_known_again(struct v8_wait_frames *waits, struct mem *live, const struct heap *heap,
				  const struct v8_place *place)
{
	const struct heap again = {.layout = waits->layout, .pages = &waits->again};
	struct v8_calls first, second;

	if (!place->pc)
		return true;
	pages_read_live(&waits->again, live, MAX_AGAIN);
	if (!v8_place_calls(heap, place, &first) || !v8_place_calls(&again, place, &second) || first.len != second.len ||
	    first.is_left)
		return false;
	for (size_t i = 0; i < first.len; i++)
		if (first.data[i].shared != second.data[i].shared || first.data[i].bytecode != second.data[i].bytecode ||
		    first.data[i].offset != second.data[i].offset ||
		    !is_same_word(heap, &again, first.data[i].shared, V8_SHARED_NAME) ||
		    !is_same_word(heap, &again, first.data[i].shared, V8_SHARED_SCRIPT))
			return false;
	return true;
}

/* What was read before of another frame of the stack still counts: it is known again only if nothing has moved. */
static void learn_frame(struct v8_wait_frames *waits, struct mem *live, struct v8_wait_frame *frame)
{
	const struct heap heap = {.layout = waits->layout, .pages = &waits->pages, .lines = &waits->lines};
	const struct v8_place place = place_of(frame);
	struct v8_named found;
	uint64_t *slot;
	bool created;

	if (waits->frames.len >= MAX_FRAMES || !is_known_again(waits, live, frame) ||
	    v8_name_place(waits->named, &heap, &place, &found) != V8_NAMED ||
	    !are_calls_known_again(waits, live, &heap, &place) || !is_known_again(waits, live, frame))
		return;
	slot = u64map_put(&waits->known, hash_frame(frame), &created);
	if (slot && keep(waits, &found, frame))
		*slot = waits->frames.len;
}

void v8_wait_frames_learn(struct v8_wait_frames *waits, struct mem *live, const struct raw_stack *raw)
{
	bool is_fresh = false;

	for (size_t i = 0; i < raw->runtime.len; i++) {
		struct v8_wait_frame frame = wait_frame_of(raw, &raw->runtime.data[i]);

		if (raw->runtime.data[i].runtime != FRAME_KIND_JS || !frame.place || find(waits, &frame))
			continue;
		if (!is_fresh) {
			pages_read_live(&waits->pages, live, MAX_BYTES);
			if (waits->pages.effort > waits->effort)
				waits->pages.effort = waits->effort;
			waits->effort -= waits->pages.effort;
			is_fresh = true;
		}
		learn_frame(waits, live, &frame);
	}
	if (is_fresh)
		waits->effort += waits->pages.effort;
}

void v8_wait_frames_find(const struct v8_wait_frames *waits, const struct raw_stack *raw, const struct runtime_frame *frame,
			 struct v8_named *out)
{
	const struct v8_wait_frame wanted = wait_frame_of(raw, frame), *known = find(waits, &wanted);

	out->len = known ? known->n : 0;
	for (size_t i = 0; i < out->len; i++)
		out->data[i] = waits->shown.data[known->first + i];
}
