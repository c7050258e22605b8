/* SPDX-License-Identifier: MIT */
#include "cmd/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/parse.h"
#include "cmd/terminal.h"
#include "target/modules.h"
#include "model/snapfile.h"
#include "symbol/go_switch.h"
#include "symbol/symbolizer.h"
#include "unwind/unwind.h"

const char view_help[] =
	"Output:\n"
	"  -r, --registers        show all general registers\n"
	"      --show-rsp         show the stack pointer of each frame (also --show-sp)\n"
	"      --kernel           show kernel stacks (the default)\n"
	"      --no-kernel        do not show kernel stacks\n"
	"      --depth N          walk at most N frames\n"
	"      --no-group         one block for each thread, also when stacks are equal\n"
	"      --json             one JSON document for each process, one per line\n"
	"  -o, --output FILE      write there instead of standard output\n"
	"      --color WHEN       auto, always or never; NO_COLOR is honoured\n"
	"      --no-demangle      show names as the linker has them\n"
	"      --ignore-deleted   try the path of files marked deleted, whatever is there now\n"
	NAME_HELP
	"  -v, --verbose          errors and paths in full\n"
	"  -h, --help             this text\n";

void view_init(struct view *view)
{
	*view = (struct view){.options = {.report = {.group = true, .kernel = true}}};
}

void view_deinit(struct view *view)
{
	if (view->out && view->out != stdout)
		fclose(view->out);
	view->out = NULL;
	name_options_deinit(&view->options.naming);
}

/* In the order of enum color_mode. */
static const char *const color_words[] = {"auto", "always", "never", NULL};

int view_option(struct view_options *options, int opt, const char *value, struct err *err)
{
	uint64_t number;
	int word;

	switch (opt) {
	case 'r':
		options->report.registers = true;
		return 1;
	case VIEW_SHOW_SP:
		options->report.show_sp = true;
		return 1;
	case VIEW_KERNEL:
	case VIEW_NO_KERNEL:
		options->report.kernel = opt == VIEW_KERNEL;
		return 1;
	case VIEW_DEPTH:
		if (!parse_size(value, 1, 1u << 30, &number))
			return err_set(err, EINVAL, "--depth takes a number of frames, not '%s'", value);
		options->depth = (uint32_t)number;
		return 1;
	case VIEW_NO_GROUP:
		options->report.group = false;
		return 1;
	case VIEW_JSON:
		options->json = true;
		return 1;
	case VIEW_COLOR:
		word = parse_word("--color", value, color_words, err);
		if (word < 0)
			return word;
		options->color = (enum color_mode)word;
		return 1;
	case VIEW_NO_COLOR:
		options->color = COLOR_NEVER;
		return 1;
	case VIEW_IGNORE_DELETED:
		options->ignore_deleted = true;
		return 1;
	case VIEW_NO_DEMANGLE:
		options->no_demangle = true;
		return 1;
	case 'o':
		options->output = value;
		return 1;
	case 'v':
		options->report.verbose = true;
		return 1;
	default:
		return name_options_take(&options->naming, opt, value, err);
	}
}

bool view_has_color(const struct view_options *options, FILE *out)
{
	const char *no_color = getenv("NO_COLOR");

	if (options->color == COLOR_AUTO)
		return terminal_is_capable(fileno(out)) && !(no_color && *no_color);
	return options->color == COLOR_ALWAYS;
}

static int open_output(struct view *view, struct err *err)
{
	const char *path = view->options.output;
	bool to_stdout = !path || strcmp(path, "-") == 0;

	if (view->out)
		return 0;
	view->out = to_stdout ? stdout : fopen(path, "we");
	if (!view->out)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	view->options.report.color = view_has_color(&view->options, view->out);
	return 0;
}

struct walk_context {
	const struct snapshot *snap;
	struct modules *modules;
	struct unwind_options options;
};

static void walk_thread(const struct walk_context *ctx, struct trace_thread *t)
{
	raw_stack_deinit(&t->raw);
	unwind_thread(ctx->snap, ctx->modules, t->thread, &ctx->options, &t->raw);
}

/* A walk that read more than the copies is true only if the thread still sleeps where it was captured. */
static void confirm_live_reads(const struct walk_context *ctx, struct capture *capture, struct trace *trace)
{
	struct walk_context copies_only = *ctx;
	bool looked = false, confirmed = false;

	copies_only.options.live = NULL;
	for (size_t i = 0; i < trace->threads.len; i++) {
		struct trace_thread *t = &trace->threads.data[i];

		if (!t->raw.used_live_memory)
			continue;
		if (!looked)
			confirmed = capture_look_again(capture) == 0;
		looked = true;
		if (!confirmed || !capture_unmoved(capture, t->thread))
			walk_thread(&copies_only, t);
	}
}

/* /proc tells only pc and sp. Where a walk needed more, the thread is held once to learn the rest. */
static int complete_registers(struct trace *trace, struct snapshot *snap, struct capture *capture,
			      const struct walk_context *ctx, struct err *err)
{
	VEC(struct snap_thread *) missing = {0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < trace->threads.len; i++)
		if (trace->threads.data[i].raw.end == STACK_MISSING_REGISTER && !vec_push(&missing, &snap->threads.data[i]))
			rc = err_set(err, ENOMEM, "out of memory");
	if (rc == 0 && missing.len)
		rc = capture_complete_registers(capture, snap, missing.data, missing.len, err);
	for (size_t i = 0; rc == 0 && missing.len && i < trace->threads.len; i++)
		if (trace->threads.data[i].raw.end == STACK_MISSING_REGISTER)
			walk_thread(ctx, &trace->threads.data[i]);
	vec_deinit(&missing);
	return rc;
}

static int walk_all(struct view *view, struct snapshot *snap, struct capture *capture, struct modules *modules,
		    struct raw_stack *walked, struct trace *trace, struct err *err)
{
	struct budget budget = {.left = UNWIND_BUDGET};
	struct walk_context ctx = {
		.snap = snap,
		.modules = modules,
		.options = {
			.depth = view->options.depth,
			.live = capture ? capture_live_memory(capture) : NULL,
			.budget = &budget,
		},
	};

	if (!vec_reserve(&trace->threads, snap->threads.len))
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < snap->threads.len; i++) {
		struct trace_thread *t = &trace->threads.data[trace->threads.len++];

		*t = (struct trace_thread){.thread = &snap->threads.data[i]};
		if (walked && (walked[i].len || walked[i].error[0])) {
			t->raw = walked[i];
			walked[i] = (struct raw_stack){0};
			continue;
		}
		walk_thread(&ctx, t);
	}
	if (capture)
		confirm_live_reads(&ctx, capture, trace);
	return capture && strcmp(snap->capture.stop_mode, "auto") == 0 ? complete_registers(trace, snap, capture, &ctx, err) : 0;
}

/* Reads on all cores what naming the stacks will need. */
static bool prepare_names(struct symbolizer *sym, const struct trace *trace)
{
	VEC(const struct raw_stack *) stacks = {0};
	bool ok = true;

	for (size_t i = 0; ok && i < trace->threads.len; i++)
		ok = vec_push(&stacks, &trace->threads.data[i].raw);
	ok = ok && symbolizer_prepare(sym, stacks.data, stacks.len);
	vec_deinit(&stacks);
	return ok;
}

/* Names may tell that the walk went too far. */
static void end_at_switch(struct trace_thread *t)
{
	const char *why = go_switch_error(t->user);

	if (!go_switch_is_last(t->user))
		return;
	t->raw.len = t->user->data[t->user->len - 1].raw + 1;
	t->raw.end = why ? STACK_NO_UNWIND_INFO : STACK_COMPLETE;
	t->raw.end_pc = t->raw.data[t->raw.len - 1].pc;
	snprintf(t->raw.error, sizeof(t->raw.error), "%s", why ? why : "");
}

static int name_all(struct view *view, struct symbolizer *sym, struct trace *trace, struct err *err)
{
	if (!prepare_names(sym, trace))
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < trace->threads.len; i++) {
		struct trace_thread *t = &trace->threads.data[i];

		t->user = symbolizer_name(sym, &t->raw);
		if (view->options.report.kernel && t->thread->nkernel)
			t->kernel = symbolizer_name_kernel(sym, t->thread);
		if (!t->user || (view->options.report.kernel && t->thread->nkernel && !t->kernel))
			return err_set(err, ENOMEM, "out of memory");
		end_at_switch(t);
	}
	trace->kernel_symbols_error = symbolizer_kernel_error(sym);
	return 0;
}

static int write_report(struct view *view, const struct trace *trace, struct err *err)
{
	int rc = open_output(view, err);

	if (rc < 0)
		return rc;
	if (view->documents && !view->options.json)
		fputc('\n', view->out);
	rc = view->options.json ? report_json(trace, &view->options.report, view->out)
				: report_text(trace, &view->options.report, view->out);
	if (rc == 0 && fflush(view->out) != 0)
		rc = -errno;
	if (rc < 0)
		return err_set(err, -rc, "writing the output: %s", strerror(-rc));
	view->documents++;
	view->incomplete |= !trace_is_complete(trace);
	return 0;
}

/* Before anything is printed: whoever reads the output may stop reading. */
static int save(const struct view *view, const struct snapshot *snap, struct err *err)
{
	const char *path = view->options.save;
	_cleanup_fclose_ FILE *f = fopen(path, "we");
	int rc;

	if (!f)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	rc = snapfile_write(snap, f, err);
	if (rc == 0 && fflush(f) != 0)
		rc = err_set(err, errno, "%s: %s", path, strerror(errno));
	return rc;
}

static void open_names(struct view *view, struct snapshot *snap)
{
	struct name_options *naming = &view->options.naming;

	name_options_open(naming);
	if (naming->cache_error.code && view->options.report.verbose)
		snapshot_note(snap, "%s", naming->cache_error.msg);
	if (naming->debuginfod_error.code)
		snapshot_note(snap, "%s", naming->debuginfod_error.msg);
}

DEFINE_CLEANUP(modules, struct modules *, modules_destroy)
DEFINE_CLEANUP(symbolizer, struct symbolizer *, symbolizer_destroy)

int view_show(struct view *view, struct snapshot *snap, struct capture *capture, struct raw_stack *walked,
	      uint64_t started_ns, struct err *err)
{
	struct symbolizer_options symbol_options = {
		.native = {.demangle = !view->options.no_demangle},
		.kernel_addresses = !snap->replayed,
	};
	_cleanup_(cleanup_modules) struct modules *modules = NULL;
	_cleanup_(cleanup_symbolizer) struct symbolizer *sym = NULL;
	_cleanup_(trace_deinit) struct trace trace = {.snap = snap, .timings = {.capture_ns = snap->capture.capture_ns}};
	uint64_t before = monotonic_ns(), walked_at;
	int rc = modules_create(snap, view->options.ignore_deleted, err, &modules);

	if (rc == 0)
		rc = walk_all(view, snap, capture, modules, walked, &trace, err);
	walked_at = monotonic_ns();
	if (rc == 0 && view->options.save)
		rc = save(view, snap, err);
	open_names(view, snap);
	symbol_options.native.symbols = view->options.naming.symbols;
	if (rc == 0 && !(sym = symbolizer_create(modules, &symbol_options)))
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc == 0)
		rc = name_all(view, sym, &trace, err);
	if (rc < 0)
		return rc;
	trace.timings.unwind_ns = walked_at - before;
	trace.timings.symbolize_ns = monotonic_ns() - walked_at;
	trace.timings.total_ns = monotonic_ns() - started_ns;
	return write_report(view, &trace, err);
}
