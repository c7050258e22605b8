/* SPDX-License-Identifier: MIT */
#include "report/offcpu.h"

#include <inttypes.h>
#include <string.h>

#include "report/report.h"
#include "report/text_format.h"
#include "base/utf8.h"

/* Writes a name without the characters that separate names. */
static void put_name(const struct text *t, const char *name)
{
	char one[8];
	uint32_t code;

	for (size_t len; *name; name += len) {
		len = utf8_next(name, &code);
		memcpy(one, name, len);
		one[len] = '\0';
		text_untrusted(t, code == ';' ? ":" : one);
	}
}

static void put_frame(const struct text *t, const struct frame *frame)
{
	fputc(';', t->out);
	if (frame->kind == FRAME_KIND_SIGNAL) {
		fputs("<signal handler called>", t->out);
	} else if (frame->symbol && *frame->symbol) {
		put_name(t, frame->symbol);
	} else if (frame->module && frame->kind != FRAME_KIND_KERNEL) {
		put_name(t, path_tail(frame->module->path, 1));
		fprintf(t->out, "+0x%" PRIx64, frame->module_offset);
	} else {
		fprintf(t->out, "0x%" PRIx64, frame->address);
	}
	if (frame->kind == FRAME_KIND_KERNEL)
		fputs("_[k]", t->out);
}

static void put_stack(const struct text *t, const struct stack *stack)
{
	for (size_t i = stack ? stack->len : 0; i-- > 0;)
		put_frame(t, &stack->data[i]);
}

static bool is_empty(const struct stack *stack)
{
	return !stack || !stack->len;
}

/* From the innermost frame to the outermost: what woke the thread is next to where it waited. */
static void put_waker(const struct text *t, const struct offcpu_waker *waker)
{
	fputs(";--", t->out);
	if (waker->kernel_error && is_empty(waker->kernel))
		fputs(";[no kernel stack]_[k]", t->out);
	for (size_t i = 0; waker->kernel && i < waker->kernel->len; i++)
		put_frame(t, &waker->kernel->data[i]);
	for (size_t i = 0; waker->user && i < waker->user->len; i++)
		put_frame(t, &waker->user->data[i]);
	if (waker->user_error)
		fputs(is_empty(waker->user) ? ";[no user stack]" : ";[incomplete]", t->out);
	fputc(';', t->out);
	put_name(t, waker->name && *waker->name ? waker->name : "?");
}

static void put_row(const struct text *t, const struct offcpu_row *row)
{
	uint64_t us = row->sum.total_ns / 1000 + (row->sum.total_ns % 1000 >= 500);

	put_name(t, row->thread_name && *row->thread_name ? row->thread_name : "?");
	if (row->user_error)
		fputs(is_empty(row->user) ? ";[no user stack]" : ";[incomplete]", t->out);
	put_stack(t, row->user);
	if (row->kernel_error && is_empty(row->kernel))
		fputs(";[no kernel stack]_[k]", t->out);
	put_stack(t, row->kernel);
	if (row->state == 'R')
		fputs(";[waiting for a CPU]_[k]", t->out);
	if (row->has_waker)
		put_waker(t, &row->waker);
	fprintf(t->out, " %" PRIu64 "\n", us ? us : 1);
}

int report_offcpu_folded(const struct offcpu_profile *profile, const struct offcpu_report_options *options, FILE *out)
{
	const struct text t = {.out = out};

	report_begin();
	for (size_t i = 0; i < profile->rows.len; i++)
		if (!profile->rows.data[i].idle || !options->hide_idle)
			put_row(&t, &profile->rows.data[i]);
	return report_flush(out);
}
