/* SPDX-License-Identifier: MIT */
#include "report/json_frame.h"

#include "report/names.h"

static void put_source(struct json *j, const struct frame *frame)
{
	if (!frame->file) {
		json_null(j, "source");
		return;
	}
	json_object(j, "source");
	json_string(j, "file", frame->file);
	if (frame->line)
		json_uint(j, "line", frame->line);
	else
		json_null(j, "line");
	json_uint(j, "column", frame->column);
	json_object_end(j);
}

static void put_locals(struct json *j, const struct frame *frame)
{
	if (!frame->locals)
		return;
	json_array(j, "locals");
	for (uint32_t i = 0; i < frame->nlocals; i++) {
		json_object(j, NULL);
		json_string(j, "name", frame->locals[i].name);
		json_string(j, "value", frame->locals[i].value);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_frame(struct json *j, const struct frame *frame, const struct raw_stack *raw)
{
	json_object(j, NULL);
	json_hex(j, "address", frame->address);
	json_string(j, "kind", frame_kind_name(frame->kind));
	json_string(j, "symbol", frame->symbol);
	json_string(j, "symbol_source", symbol_source_name(frame->symbol_source));
	if (frame->has_offset)
		json_uint(j, "offset", frame->offset);
	else
		json_null(j, "offset");
	json_string(j, "module", frame->module ? frame->module->path : NULL);
	json_string(j, "build_id", frame->module ? frame->module->build_id : NULL);
	if (frame->module && frame->kind != FRAME_KIND_KERNEL)
		json_hex(j, "module_offset", frame->module_offset);
	else
		json_null(j, "module_offset");
	put_source(j, frame);
	json_bool(j, "inlined", frame->inlined);
	if (frame_kind_mark(frame->kind)) {
		json_string(j, "tier", frame->tier);
		json_string(j, "line_kind", frame->file && frame->line ? line_kind_name(frame->line_kind) : NULL);
		json_uint(j, "replaces", frame->replaces);
		put_locals(j, frame);
	}
	json_string(j, "found_by", name_found_by(frame));
	if (raw && frame->raw < raw->len)
		json_hex(j, "sp", raw->data[frame->raw].sp);
	json_object_end(j);
}

void json_stack(struct json *j, const char *key, const struct stack *stack, const struct raw_stack *raw)
{
	json_array(j, key);
	for (size_t i = 0; stack && i < stack->len; i++)
		put_frame(j, &stack->data[i], raw);
	json_array_end(j);
}

void json_lacking(struct json *j, const struct lacking *lacking)
{
	json_array(j, "lacking");
	for (size_t i = 0; i < lacking->len; i++) {
		const struct module_info *module = lacking->data[i];

		json_object(j, NULL);
		json_string(j, "module", module->path);
		json_string(j, "build_id", module->build_id);
		json_string(j, "problem", module->problem);
		json_string(j, "help", module->help);
		json_object_end(j);
	}
	json_array_end(j);
}
