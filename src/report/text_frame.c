/* SPDX-License-Identifier: MIT */
#include "report/text_frame.h"

#include <inttypes.h>

void text_note(const struct text *t, const char *prefix, const char *note)
{
	text_style(t, STYLE_DIM);
	fprintf(t->out, "note: %s", prefix);
	text_untrusted(t, note);
	text_style(t, STYLE_PLAIN);
	fputc('\n', t->out);
}

static void put_symbol(const struct text *t, const struct frame *frame, enum style style)
{
	text_style(t, style);
	text_untrusted(t, frame->symbol);
	text_style(t, STYLE_PLAIN);
	if (frame->has_offset && !frame->inlined)
		fprintf(t->out, "+0x%" PRIx64, frame->offset);
}

void text_kernel_frame(const struct text *t, const struct frame *frame)
{
	fputs("  k   ", t->out);
	if (frame->symbol) {
		put_symbol(t, frame, STYLE_KERNEL);
	} else {
		text_style(t, STYLE_KERNEL);
		fprintf(t->out, "0x%016" PRIx64, frame->address);
		text_style(t, STYLE_PLAIN);
	}
	if (frame->module) {
		fputs(" [", t->out);
		text_untrusted(t, frame->module->path);
		fputc(']', t->out);
	}
	fputc('\n', t->out);
}

/* The address column; empty for an inlined call, which has the address of the frame that it is part of. */
static void put_address(const struct text *t, const struct raw_stack *raw, const struct frame *frame)
{
	enum { WIDTH = 2 + 16 };
	FILE *out = t->out;

	text_style(t, STYLE_DIM);
	if (frame->inlined)
		fprintf(out, "%*s", WIDTH, "");
	else
		fprintf(out, "0x%016" PRIx64, frame->address);
	if (raw && frame->raw < raw->len && !frame->inlined)
		fprintf(out, "  sp 0x%016" PRIx64, raw->data[frame->raw].sp);
	else if (raw)
		fprintf(out, "  %*s", 3 + WIDTH, "");
	text_style(t, STYLE_PLAIN);
	fputs("  ", out);
}

static void put_module(const struct text *t, const struct frame_format *format, const struct module_info *module)
{
	text_untrusted(t, format->verbose ? module->path : path_tail(module->path, 1));
}

static void put_source(const struct text *t, const struct frame_format *format, const struct frame *frame)
{
	if (!frame->file)
		return;
	fputs("  at ", t->out);
	text_untrusted(t, format->verbose ? frame->file : path_tail(frame->file, 2));
	if (frame->line)
		fprintf(t->out, ":%" PRIu32, frame->line);
}

static void put_place(const struct text *t, const struct frame_format *format, const struct frame *frame)
{
	if (frame->kind == FRAME_KIND_SIGNAL) {
		fputs("<signal handler called>", t->out);
	} else if (frame->symbol) {
		put_symbol(t, frame, STYLE_STRONG);
		if (frame->module && !frame->inlined) {
			text_style(t, STYLE_DIM);
			fputs("  in ", t->out);
			put_module(t, format, frame->module);
			text_style(t, STYLE_PLAIN);
		}
	} else if (frame->module) {
		put_module(t, format, frame->module);
		fprintf(t->out, "+0x%" PRIx64, frame->module_offset);
	} else {
		fputs("??", t->out);
	}
	put_source(t, format, frame);
}

void text_user_frame(const struct text *t, const struct frame_format *format, const struct frame *frame, size_t index)
{
	FILE *out = t->out;

	fprintf(out, "  #%-2zu ", index);
	put_address(t, format->raw, frame);
	put_place(t, format, frame);
	if (frame->inlined)
		fputs("  [inlined]", out);
	if (frame->flags & FRAME_BY_FRAME_POINTER)
		fputs("  [by frame pointer]", out);
	if (frame->flags & FRAME_BY_CODE)
		fputs("  [by reading the code]", out);
	if (frame->flags & FRAME_BY_SCAN)
		fputs("  [by stack scan]", out);
	fputc('\n', out);
}

void text_lacking(const struct text *t, const struct lacking *lacking)
{
	const char *help = NULL;

	text_style(t, STYLE_DIM);
	for (size_t i = 0; i < lacking->len; i++) {
		const struct module_info *module = lacking->data[i];

		if (help && help != module->help)
			fprintf(t->out, "  %s\n", help);
		help = module->help;
		fputs(i ? "module " : "\nmodule ", t->out);
		text_untrusted(t, module->path);
		fputs(": ", t->out);
		text_untrusted(t, module->problem);
		if (module->build_id) {
			fputs(" (build-id ", t->out);
			text_untrusted(t, module->build_id);
			fputc(')', t->out);
		}
		fputc('\n', t->out);
	}
	if (help)
		fprintf(t->out, "  %s\n", help);
	text_style(t, STYLE_PLAIN);
}
