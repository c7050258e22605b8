/* SPDX-License-Identifier: MIT */
#include "runtime/v8/frame.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "runtime/v8/baseline.h"
#include "runtime/v8/function.h"
#include "runtime/v8/position.h"
#include "runtime/v8/step.h"

enum {
	WORD = 8,
	MAX_PLACES = 1024, /* frames of one stack */
	RECORD = 16,       /* frame pointer and return address */
	TAG = 1,
	EXIT_TARGET = 24,  /* from the frame pointer of a builtin in C++: its function, among its arguments */
};

static bool read_word(struct mem *mem, uint64_t address, uint64_t *out)
{
	uint64_t word;

	if (mem->read(mem, address, &word, sizeof(word)) != (ssize_t)sizeof(word))
		return false;
	*out = le64toh(word);
	return true;
}

static bool is_same_file(const struct map_entry *a, const struct map_entry *b)
{
	return a->inode && a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

static bool is_anonymous(const struct map_entry *entry)
{
	return !entry->inode && (!entry->path[0] || strncmp(entry->path, "[anon", strlen("[anon")) == 0);
}

bool v8_is_made_code(const struct maps *maps, uint64_t pc)
{
	const struct map_entry *entry = maps_find(maps, pc);

	return entry && entry->perms & MAP_PERM_EXEC && is_anonymous(entry);
}

static bool is_code_of(const struct map_entry *file, const struct map_entry *entry)
{
	return entry->perms & MAP_PERM_EXEC && is_same_file(file, entry);
}

/* How far it is from where it would be if it were mapped together with the other one. */
static uint64_t distance_between(const struct map_entry *a, const struct map_entry *b)
{
	const uint64_t base = a->start - a->offset, other = b->start - b->offset;

	return base > other ? base - other : other - base;
}

/*
 * V8 may map its builtins once more for each heap, to have them near the code that it makes there. Of two mappings of the same part of the
 * file that one is the copy which is farther from the others.
 */
static bool is_copy(const struct maps *maps, const struct map_entry *file, const struct map_entry *entry)
{
	for (size_t i = 0; i < maps->len; i++) {
		const struct map_entry *other = &maps->data[i];

		if (is_code_of(file, other) && other->offset < entry->offset + (entry->end - entry->start) &&
		    entry->offset < other->offset + (other->end - other->start) && distance_between(other, file) < distance_between(entry, file))
			return true;
	}
	return false;
}

bool v8_find_code(const struct v8_layout *layout, const struct maps *maps, struct v8_code_range *out)
{
	const struct map_entry *file = maps_find(maps, layout->facts[V8_CODE]);

	*out = (struct v8_code_range){0};
	for (size_t i = 0; file && i < maps->len; i++) {
		const struct map_entry *entry = &maps->data[i];

		if (!is_code_of(file, entry))
			continue;
		if (is_copy(maps, file, entry)) {
			out->has_copies = true;
			continue;
		}
		if (!out->end)
			out->start = entry->start;
		out->end = entry->end;
	}
	return out->end;
}

/* Whether the code may be V8's, by where it is; what has unwind information was not passed by its frame pointer. */
static bool is_code(const struct v8_layout *layout, const struct maps *maps, uint64_t pc, bool *is_builtin)
{
	const struct map_entry *file = maps_find(maps, layout->facts[V8_CODE]), *entry = maps_find(maps, pc);

	*is_builtin = file && entry && is_code_of(file, entry);
	return *is_builtin || v8_is_made_code(maps, pc);
}

static bool read_slot(const struct v8_layout *layout, struct mem *mem, uint64_t fp, enum v8_fact slot, uint64_t *out)
{
	return read_word(mem, fp + layout->facts[slot], out);
}

/* Code just before an address. */
static bool read_code(const struct v8_process *p, struct mem *mem, uint64_t end, uint8_t *code, size_t len)
{
	uint64_t vaddr;
	struct module *module = p->modules ? modules_find(p->modules, end - len, &vaddr) : NULL;
	struct span bytes;

	if (!module)
		return mem_read_exact(mem, end - len, code, len);
	bytes = module->image ? image_bytes_at(module->image, vaddr) : (struct span){0};
	if (bytes.len < len)
		return false;
	memcpy(code, bytes.data, len);
	return true;
}

/* It has begun its frame, but what tells of its function may not be there yet. What cannot be read may be so, too. */
static bool is_beginning(const struct v8_process *p, struct mem *mem, uint64_t pc)
{
	uint8_t code[V8_PROLOGUE];

	return !read_code(p, mem, pc, code, sizeof(code)) || v8_begins_frame(p->arch, code, sizeof(code));
}

/* Of a builtin in C++, and of one that goes on when V8 has left the optimised code that it was inlined into. */
static bool read_marked_function(const struct v8_layout *layout, struct mem *mem, uint64_t fp, uint64_t kind, uint64_t *out)
{
	if (kind == layout->facts[V8_FRAME_BUILTIN_EXIT])
		return read_word(mem, fp + EXIT_TARGET, out);
	return (kind == layout->facts[V8_FRAME_JS_CONTINUATION] || kind == layout->facts[V8_FRAME_JS_CATCHING_CONTINUATION]) &&
	       read_slot(layout, mem, fp, V8_FP_FUNCTION, out);
}

static bool read_function(const struct v8_layout *layout, struct mem *mem, uint64_t fp, struct v8_place *out)
{
	uint64_t context;

	if (!read_slot(layout, mem, fp, V8_FP_CONTEXT, &context))
		return false;
	if (!(context & TAG)) {
		out->kind = context >> 1;
		if (!read_marked_function(layout, mem, fp, out->kind, &out->function) || !heap_is_object(out->function))
			out->function = 0;
		return true;
	}
	if (!read_slot(layout, mem, fp, V8_FP_FUNCTION, &out->function) || !heap_is_object(out->function))
		return false;
	if (out->is_builtin && (!read_slot(layout, mem, fp, V8_FP_BYTECODE, &out->bytecode) ||
				!read_slot(layout, mem, fp, V8_FP_BYTECODE_OFFSET, &out->offset)))
		out->bytecode = 0;
	return true;
}

/*
 * The caller of a frame that was found by the frame pointer begins where the record of that ends. But where V8 is entered on
 * aarch64, its frame has more above the record; then what it called has kept the frame pointer, in the same way.
 */
static uint64_t find_frame_pointer(struct mem *mem, const struct raw_frame *frame, const struct raw_frame *caller)
{
	uint64_t highest = caller->sp - RECORD, fp;

	if (!(frame->flags & FRAME_BY_FRAME_POINTER) || !read_word(mem, frame->sp - RECORD, &fp) || fp < frame->sp || fp > highest)
		return highest;
	return fp;
}

static bool find_place(const struct v8_process *p, struct mem *mem, const struct raw_frame *frame,
		       const struct raw_frame *caller, struct v8_place *out)
{
	bool is_call = frame->flags & FRAME_RETURN_ADDRESS, has_frame = caller->flags & FRAME_BY_FRAME_POINTER;
	uint64_t fp = find_frame_pointer(mem, frame, caller);

	*out = (struct v8_place){.is_exact = !is_call, .kind = V8_NO_KIND};
	if (!is_code(p->layout, p->maps, frame->pc - is_call, &out->is_builtin))
		return false;
	out->pc = out->is_builtin ? 0 : frame->pc;
	has_frame = has_frame && caller->sp >= RECORD && fp % WORD == 0;
	if (!is_call && (!has_frame || fp + p->layout->facts[V8_FP_FUNCTION] < frame->sp ||
			 is_beginning(p, mem, frame->pc))) {
		out->kind = V8_AT_EDGE;
		return !out->is_builtin;
	}
	return has_frame && read_function(p->layout, mem, fp, out);
}

bool v8_places_find(const struct v8_process *process, struct mem *mem, const struct raw_stack *raw, struct v8_places *out)
{
	for (size_t i = 0; i + 1 < raw->len && out->len < MAX_PLACES; i++) {
		struct v8_place place;

		if (!find_place(process, mem, &raw->data[i], &raw->data[i + 1], &place))
			continue;
		place.raw = (uint32_t)i;
		if (!vec_push(out, place))
			return false;
	}
	return true;
}

/*
 * The interpreter's frames have the bytecode that is executed; the same slots of others are something else. A function that
 * tells its own bytecode must have that.
 */
static bool is_interpreted(const struct heap *heap, const struct v8_place *place, uint64_t shared)
{
	uint64_t own;

	if (!heap_is(heap, place->bytecode, V8_TYPE_BYTECODE) || !heap_is_small(place->offset))
		return false;
	return !v8_has(heap->layout, V8_SHARED_DATA) || !heap_read(heap, shared, V8_SHARED_DATA, &own) ||
	       own == place->bytecode || !heap_is(heap, own, V8_TYPE_BYTECODE);
}

static void find_interpreted(const struct heap *heap, const struct v8_place *place, struct v8_call *out)
{
	if (!is_interpreted(heap, place, out->shared))
		return;
	out->bytecode = place->bytecode;
	out->offset = (int64_t)heap_small(place->offset) - (int64_t)heap->layout->facts[V8_BYTECODE_DATA] + TAG;
}

static void find_baseline(const struct heap *heap, const struct v8_place *place, const struct v8_code *code, struct v8_call *out)
{
	uint64_t own, bytecode;

	if (v8_code_of_shared(heap, out->shared, &own) && v8_code_bytecode(heap, code, &bytecode) && bytecode == own &&
	    v8_baseline_find(heap, code, bytecode, place->pc + place->is_exact, &out->offset))
		out->bytecode = bytecode;
}

/* Where nothing was called V8 keeps nothing of what is executed. */
static bool find_optimised(const struct heap *heap, const struct v8_place *place, const struct v8_code *code, uint64_t shared,
			   struct v8_calls *out)
{
	struct v8_safepoint safepoint;

	if (place->is_exact || !v8_safepoint_find(heap, code, place->pc, &safepoint))
		return false;
	out->is_left = v8_deopt_is_dropped(heap, code);
	return v8_deopt_find(heap, code, &safepoint, shared, out);
}

static bool read_shared(const struct heap *heap, const struct v8_place *place, uint64_t *out)
{
	*out = place->shared;
	return place->shared || js_function_shared(heap, place->function, out);
}

bool v8_place_calls(const struct heap *heap, const struct v8_place *place, struct v8_calls *out)
{
	struct v8_call own = {0};
	struct v8_code code;

	out->is_left = false;
	if (!read_shared(heap, place, &own.shared))
		return false;
	if (place->is_builtin)
		find_interpreted(heap, place, &own);
	else if (place->pc && place->kind == V8_NO_KIND && v8_code_find(heap, place->pc, &code)) {
		if (code.tier == V8_BASELINE)
			find_baseline(heap, place, &code, &own);
		else if (find_optimised(heap, place, &code, own.shared, out))
			return true;
	}
	out->data[0] = own;
	out->len = 1;
	return true;
}

static void find_line(const struct heap *heap, const struct v8_place *place, const struct v8_call *call,
		      const struct js_function *function, struct js_frame *out)
{
	uint32_t position;

	if (!function->source)
		return;
	if (call->bytecode && position_of_bytecode(heap, call->bytecode, call->offset, &position) &&
	    position_line(heap, function->source, position, &out->line)) {
		out->line_kind = place->is_exact ? LINE_APPROXIMATE : LINE_CURRENT;
		return;
	}
	out->line_kind = LINE_DEFINITION;
	if (function->has_start && !position_line(heap, function->source, function->start, &out->line))
		out->line = 0;
}

/* As V8 itself shows it; code of eval() is in a script without a name. */
static const char *name_of(const struct js_function *function)
{
	if (function->name[0])
		return function->name;
	return function->has_script && !function->file[0] ? "eval" : "<anonymous>";
}

static const char *tier_of(const struct v8_place *place, const struct v8_call *call, const struct js_function *function)
{
	if (!place->is_builtin)
		return "compiled";
	if (!function->has_script)
		return "builtin";
	return call->bytecode ? "interpreted" : NULL;
}

bool js_frame_read(const struct heap *heap, const struct v8_place *place, const struct v8_call *call, struct js_frame *out)
{
	struct js_function function;

	memset(out, 0, sizeof(*out));
	if (!js_shared_read(heap, call->shared, &function) || (place->kind != V8_NO_KIND && function.has_script))
		return false;
	out->is_stub = function.has_script ? call->is_builtin : !function.name[0];
	snprintf(out->name, sizeof(out->name), "%s", name_of(&function));
	if (function.has_script) /* that of an eval() has no name */
		snprintf(out->file, sizeof(out->file), "%s", function.file[0] ? function.file : "<anonymous>");
	out->tier = tier_of(place, call, &function);
	find_line(heap, place, call, &function, out);
	return true;
}
