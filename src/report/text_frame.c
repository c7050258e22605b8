/* SPDX-License-Identifier: MIT */
#include "report/text_frame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/shorten.h"

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

static void put_kernel_frame(const struct text *t, const struct frame *frame)
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

/* On the way from a system call or an interrupt to the function that does it: the same in every stack. */
static bool is_entry(const struct frame *frame)
{
	static const char *const starts[] = {
		"entry_SYSCALL_",    "do_syscall_64",
		"x64_sys_call",      "__x64_sys_",
		"__arm64_sys_",      "__se_sys_",
		"__do_sys_",         "invoke_syscall",
		"do_el0_svc",        "el0_svc",
		"el0t_64_sync",      "el0_sync",
		"el0t_64_irq",       "el0t_64_fiq",
		"el0_interrupt",     "__el0_irq_handler",
		"__el0_fiq_handler", "el0_irq",
		"asm_sysvec_",       "sysvec_",
		"irqentry_exit",     "asm_common_interrupt",
		"common_interrupt",
	};

	for (size_t i = 0; frame->symbol && i < sizeof(starts) / sizeof(starts[0]); i++)
		if (strncmp(frame->symbol, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

static void put_indent(const struct text *t, const struct frame_format *format)
{
	if (format->indent)
		fputs(format->indent, t->out);
}

void text_kernel_stack(const struct text *t, const struct frame_format *format, const struct stack *stack)
{
	size_t shown = stack ? stack->len : 0;

	while (shown > 1 && !format->verbose && is_entry(&stack->data[shown - 1]))
		shown--;
	for (size_t i = 0; i < shown; i++) {
		put_indent(t, format);
		put_kernel_frame(t, &stack->data[i]);
	}
}

/* What a line leaves out to be shorter. */
struct cut {
	size_t name;    /* columns that the function's name has at most */
	bool no_offset; /* "+0x56" */
	bool no_module; /* "in libc.so.6" */
	bool no_file;   /* only its line */
	bool no_tier;   /* "[interpreted]" */
};

/* The address column; empty for an inlined call, which has the address of the frame that it is part of. */
static void put_address(const struct text *t, const struct frame_format *format, const struct frame *frame)
{
	enum { WIDTH = 2 + 16 };
	const struct raw_stack *raw = format->raw;
	const char *mark = frame_kind_mark(frame->kind);
	FILE *out = t->out;

	if (!mark && !raw && format->no_addresses)
		return;
	text_style(t, STYLE_DIM);
	if (mark)
		fprintf(out, "%-*s  ", format->no_addresses ? 0 : WIDTH, mark);
	else if (!format->no_addresses && frame->inlined)
		fprintf(out, "%*s  ", WIDTH, "");
	else if (!format->no_addresses)
		fprintf(out, "0x%016" PRIx64 "  ", frame->address);
	if (raw && frame->raw < raw->len && !frame->inlined && !mark)
		fprintf(out, "sp 0x%016" PRIx64 "  ", raw->data[frame->raw].sp);
	else if (raw)
		fprintf(out, "%*s", 3 + WIDTH + 2, "");
	text_style(t, STYLE_PLAIN);
}

static void put_module(const struct text *t, const struct frame_format *format, const struct module_info *module)
{
	text_untrusted(t, format->verbose ? module->path : path_tail(module->path, 1));
}

/* "node:internal/timers": of a file that is part of the runtime, where all of it counts. */
static bool is_name(const char *file)
{
	return strncmp(file, "node:", 5) == 0;
}

static void put_source(const struct text *t, const struct frame_format *format, const struct frame *frame,
		       const struct cut *cut)
{
	if (!frame->file)
		return;
	fputs(cut->no_file ? "  at line " : "  at ", t->out);
	if (!cut->no_file)
		text_untrusted(t, format->verbose || is_name(frame->file) ? frame->file : path_tail(frame->file, 2));
	if (frame->line)
		fprintf(t->out, cut->no_file ? "%" PRIu32 : ":%" PRIu32, frame->line);
	if (frame->line && frame->line_kind == LINE_APPROXIMATE)
		fputs(" or close to it", t->out);
	if (frame->line && frame->line_kind == LINE_DEFINITION)
		fputs(" (where it begins)", t->out);
}

static void put_function(const struct text *t, const struct frame *frame, const struct cut *cut)
{
	_cleanup_free_ char *name = text_columns(frame->symbol) > cut->name ? shorten_symbol(frame, cut->name) : NULL;

	text_style(t, STYLE_STRONG);
	text_untrusted(t, name ? name : frame->symbol);
	text_style(t, STYLE_PLAIN);
	if (frame->has_offset && !frame->inlined && !cut->no_offset)
		fprintf(t->out, "+0x%" PRIx64, frame->offset);
}

/* "??  in sleep+0x64af": what is before the offset must not read as a function. */
static void put_place(const struct text *t, const struct frame_format *format, const struct frame *frame,
		      const struct cut *cut)
{
	bool has_module = frame->module && !frame->inlined && !cut->no_module;

	if (frame->kind == FRAME_KIND_SIGNAL)
		fputs("<signal handler called>", t->out);
	else if (frame->symbol)
		put_function(t, frame, cut);
	else
		fputs("??", t->out);
	if (has_module && frame->kind != FRAME_KIND_SIGNAL) {
		text_style(t, STYLE_DIM);
		fputs("  in ", t->out);
		put_module(t, format, frame->module);
		if (!frame->symbol)
			fprintf(t->out, "+0x%" PRIx64, frame->module_offset);
		text_style(t, STYLE_PLAIN);
	}
	put_source(t, format, frame, cut);
}

static void put_user_frame(const struct text *t, const struct frame_format *format, const struct frame *frame,
			   size_t index, const struct cut *cut)
{
	FILE *out = t->out;

	put_indent(t, format);
	fprintf(out, "  #%-2zu ", index);
	put_address(t, format, frame);
	put_place(t, format, frame, cut);
	if (frame->tier && !cut->no_tier)
		fprintf(out, "  [%s]", frame->tier);
	if (frame->inlined)
		fputs("  [inlined]", out);
	if (format->verbose && frame->flags & FRAME_BY_FRAME_POINTER)
		fputs("  [by frame pointer]", out);
	if (format->verbose && frame->flags & FRAME_BY_CODE)
		fputs("  [by reading the code]", out);
	if (frame->flags & FRAME_BY_SCAN)
		fputs("  [by stack scan]", out);
}

static size_t line_columns(const struct frame_format *format, const struct frame *frame, size_t index,
			   const struct cut *cut)
{
	_cleanup_free_ char *line = NULL;
	size_t len;
	struct text plain = {.out = open_memstream(&line, &len)};

	if (!plain.out)
		return 0;
	put_user_frame(&plain, format, frame, index, cut);
	fclose(plain.out);
	return line ? text_columns(line) : 0;
}

/* "Thread.java" of "java.lang.Thread$Builder.start": the class says it, too. */
static bool is_file_of_class(const struct frame *frame)
{
	const char *class = name_without_package(frame->symbol);
	const size_t len = strcspn(class, "$.");

	return frame->file && frame->line && strncmp(frame->file, class, len) == 0 &&
	       strcmp(frame->file + len, ".java") == 0;
}

/* A class and its method are the last to be shortened. */
static void fit_java(const struct frame_format *format, const struct frame *frame, size_t index, struct cut *cut)
{
	enum { LEAST_NAME = 12 };
	size_t columns, name = text_columns(name_without_package(frame->symbol));

	if (line_columns(format, frame, index, cut) <= format->width)
		return;
	cut->name = name;
	if (line_columns(format, frame, index, cut) > format->width)
		cut->no_file = is_file_of_class(frame);
	if (line_columns(format, frame, index, cut) > format->width)
		cut->no_tier = true;
	columns = line_columns(format, frame, index, cut);
	if (columns > format->width)
		cut->name = name < columns - format->width + LEAST_NAME ? LEAST_NAME : name - (columns - format->width);
}

/* First the name becomes shorter, then what can be found elsewhere is left out. */
static void fit_native(const struct frame_format *format, const struct frame *frame, size_t index, struct cut *cut)
{
	enum { GOOD_NAME = 24, LEAST_NAME = 12 };
	size_t columns = line_columns(format, frame, index, cut),
	       name = frame->symbol ? text_columns(frame->symbol) : 0, over;

	if (columns <= format->width || !name)
		return;
	over = columns - format->width;
	if (name < over + GOOD_NAME) {
		cut->no_offset = true;
		cut->no_module = frame->file != NULL;
		columns = line_columns(format, frame, index, cut);
		over = columns > format->width ? columns - format->width : 0;
	}
	cut->name = name < over + LEAST_NAME ? LEAST_NAME : name - over;
}

static bool are_equal(const struct frame *a, const struct frame *b)
{
	return a->address == b->address && a->symbol == b->symbol && a->inlined == b->inlined && a->kind == b->kind &&
	       a->line == b->line && a->file == b->file && !a->nlocals && !b->nlocals;
}

/* How often the next `period` frames come, one after the other; 1: once. */
static size_t count_rounds(const struct stack *stack, size_t at, size_t period)
{
	size_t i = at + period;

	while (i < stack->len && are_equal(&stack->data[i], &stack->data[i - period]))
		i++;
	return (i - at) / period;
}

enum { MAX_PERIOD = 8, LEAST_SAVED = 3 };

/* How many frames from here on are repeated, and how often they come; 0: none are. */
static size_t find_period(const struct stack *stack, size_t at, size_t *rounds)
{
	for (size_t period = 1; period <= MAX_PERIOD; period++) {
		*rounds = count_rounds(stack, at, period);
		if ((*rounds - 1) * period >= LEAST_SAVED)
			return period;
	}
	return 0;
}

static void put_repetition(const struct text *t, const struct frame_format *format, size_t period, size_t more)
{
	put_indent(t, format);
	text_style(t, STYLE_DIM);
	if (period == 1)
		fprintf(t->out, "  …   %zu more times", more);
	else
		fprintf(t->out, "  …   these %zu frames %zu more %s", period, more, more == 1 ? "time" : "times");
	text_style(t, STYLE_PLAIN);
	fputc('\n', t->out);
}

static void put_locals(const struct text *t, const struct frame_format *format, const struct frame *frame)
{
	for (uint32_t i = 0; i < frame->nlocals; i++) {
		put_indent(t, format);
		fputs("          ", t->out);
		text_untrusted(t, frame->locals[i].name);
		text_style(t, STYLE_DIM);
		fputs(" = ", t->out);
		text_untrusted(t, frame->locals[i].value);
		text_style(t, STYLE_PLAIN);
		fputc('\n', t->out);
	}
}

static void put_frames(const struct text *t, const struct frame_format *format, const struct stack *stack, size_t from,
		       size_t to)
{
	for (size_t i = from; i < to; i++) {
		struct cut cut = {.name = SIZE_MAX};

		if (format->width && stack->data[i].kind == FRAME_KIND_JAVA && stack->data[i].symbol)
			fit_java(format, &stack->data[i], i, &cut);
		else if (format->width)
			fit_native(format, &stack->data[i], i, &cut);
		put_user_frame(t, format, &stack->data[i], i, &cut);
		fputc('\n', t->out);
		put_locals(t, format, &stack->data[i]);
	}
}

void text_user_stack(const struct text *t, const struct frame_format *format, const struct stack *stack)
{
	bool all = format->verbose || format->raw; /* no two stack pointers are the same */

	for (size_t i = 0, shown; stack && i < stack->len; i += shown) {
		size_t rounds = 1, period = all ? 0 : find_period(stack, i, &rounds);

		shown = period ? period : 1;
		put_frames(t, format, stack, i, i + shown);
		if (period) {
			put_repetition(t, format, period, rounds - 1);
			shown = period * rounds;
		}
	}
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
