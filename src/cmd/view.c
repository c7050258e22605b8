/* SPDX-License-Identifier: MIT */
#include "cmd/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/output.h"
#include "cmd/parse.h"
#include "cmd/terminal.h"
#include "model/snapfile.h"
#include "target/patience.h"

const char view_help[] =
	"Which threads:\n"
	"      --state LETTERS    only those in these states, such as R,D: R running or ready, S sleeping,\n"
	"                         D uninterruptible, T stopped, t traced, Z ended\n"
	"      --name GLOB        only those with such a name: 'worker*'\n"
	"      --grep REGEX       only those with a match in their stacks: functions, modules, files, the\n"
	"                         system call\n"
	"\n"
	"Output:\n"
	"      --brief            only the table: a line for each stack\n"
	"  -r, --registers        show all general registers\n"
	"      --show-rsp         show the stack pointer of each frame (also --show-sp)\n"
	"      --kernel           show kernel stacks (the default)\n"
	"      --no-kernel        do not show kernel stacks\n"
	"      --depth N          walk at most N frames\n"
	"      --raw              also the native frames that those of Python, Java or JavaScript stand for\n"
	"      --no-runtime       only native frames: do not look for such runtimes\n"
	"      --locals           the variables of each Python frame\n"
	"      --no-addresses     leave out the addresses of frames\n"
	"      --long             lines as long as they are, also on a terminal that is narrower\n"
	"      --no-group         one block for each thread, also when stacks are equal\n"
	"      --json             one JSON document for each process, one per line\n"
	"  -o, --output FILE      write there instead of standard output\n"
	"      --color WHEN       auto, always or never; NO_COLOR is honoured\n"
	"      --no-demangle      show names as the linker has them\n"
	"      --ignore-deleted   try the path of files marked deleted, whatever is there now\n" NAME_HELP
	"  -v, --verbose          all frames, how they were found, and paths in full\n"
	"  -h, --help             this text\n";

void view_init(struct view *view)
{
	*view = (struct view){.options = {.format = &report_format_text, .report = {.group = true, .kernel = true}}};
}

static void release(struct view *view)
{
	for (size_t i = 0; i < view->held.len; i++)
		tracing_destroy(view->held.data[i]);
	view->held.len = view->traces.len = 0;
}

void view_deinit(struct view *view)
{
	if (view->out && view->out != stdout)
		fclose(view->out);
	view->out = NULL;
	release(view);
	vec_deinit(&view->held);
	vec_deinit(&view->traces);
	name_options_deinit(&view->options.naming);
	selection_deinit(&view->options.selection);
}

/* In the order of enum color_mode. */
static const char *const color_words[] = {"auto", "always", "never", NULL};

int view_choose_format(struct view_options *options, const struct report_format *format, struct err *err)
{
	const struct report_format *other = options->format;

	if (!other->is_text && other != format)
		return err_set(err, EINVAL, "give either %s or %s", other->option, format->option);
	options->format = format;
	return 0;
}

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
		word = view_choose_format(options, &report_format_json, err);
		return word < 0 ? word : 1;
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
	case VIEW_NO_ADDRESSES:
		options->report.no_addresses = true;
		return 1;
	case VIEW_BRIEF:
		options->report.brief = true;
		return 1;
	case VIEW_STATE:
		word = selection_add_states(&options->selection, value, err);
		return word < 0 ? word : 1;
	case VIEW_NAME:
		options->selection.name = value;
		return 1;
	case VIEW_GREP:
		word = selection_set_regex(&options->selection, value, err);
		return word < 0 ? word : 1;
	case VIEW_RAW:
		options->raw = true;
		return 1;
	case VIEW_NO_RUNTIME:
		options->no_runtimes = true;
		return 1;
	case VIEW_LOCALS:
		options->locals = true;
		options->report.group = false; /* equal stacks have variables of their own */
		return 1;
	case VIEW_LONG:
		options->long_lines = true;
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

int view_check(const struct view_options *options, struct err *err)
{
	if (options->raw && options->no_runtimes)
		return err_set(err, EINVAL, "give either --raw or --no-runtime");
	if (options->locals && options->no_runtimes)
		return err_set(err, EINVAL, "give either --locals or --no-runtime");
	if (options->report.brief && !options->format->is_text)
		return err_set(err, EINVAL, "--brief is for the text: %s has all", options->format->option);
	return 0;
}

bool view_has_color(const struct view_options *options, FILE *out)
{
	const char *no_color = getenv("NO_COLOR");

	if (options->color == COLOR_AUTO)
		return terminal_is_capable(fileno(out)) && !(no_color && *no_color);
	return options->color == COLOR_ALWAYS;
}

/* Addresses are rarely read: where there is little room they are the first to go. */
void view_fit_terminal(struct view_options *options, FILE *out)
{
	enum { ROOM_FOR_ADDRESSES = 100 };
	unsigned columns, rows;

	if (!terminal_size(fileno(out), &columns, &rows))
		return;
	options->report.height = rows;
	if (options->long_lines)
		return;
	options->report.width = columns;
	options->report.no_addresses |= columns < ROOM_FOR_ADDRESSES;
}

static int open_output(struct view *view, struct err *err)
{
	struct output output;
	int rc;

	if (view->out)
		return 0;
	rc = output_open(&output, view->options.output, OUTPUT_REPORT, err);
	if (rc == 0)
		rc = output_empty(&output, err);
	if (rc < 0)
		return rc;
	view->out = output.file;
	view->options.report.color = view_has_color(&view->options, view->out);
	view_fit_terminal(&view->options, view->out);
	return 0;
}

static int written(struct view *view, int rc, struct err *err)
{
	if (rc == 0 && fflush(view->out) != 0)
		rc = -errno;
	return rc < 0 ? err_set(err, -rc, "writing the output: %s", strerror(-rc)) : 0;
}

int view_finish(struct view *view, struct err *err)
{
	unsigned n = (unsigned)view->held.len;
	int rc;

	if (!n)
		return 0;
	rc = open_output(view, err);
	if (rc < 0)
		return rc;
	if (view->documents)
		fputc('\n', view->out);
	rc = view->options.format->traces(view->traces.data, view->traces.len, &view->options.report, view->out);
	release(view);
	rc = written(view, rc, err);
	if (rc == 0)
		view->documents += n;
	return rc;
}

/* So many processes are shown as one: each takes memory, and half a dozen descriptors. */
enum { MAX_HELD = 64 };

static int hold(struct view *view, struct tracing *tracing, const struct trace *trace, struct err *err)
{
	int rc = view->held.len >= MAX_HELD ? view_finish(view, err) : 0;

	if (rc == 0 && (!vec_reserve(&view->held, view->held.len + 1) || !vec_push(&view->traces, trace)))
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc < 0) {
		tracing_destroy(tracing);
		return rc;
	}
	view->held.data[view->held.len++] = tracing;
	return 0;
}

static int write_report(struct view *view, const struct trace *trace, struct err *err)
{
	int rc = open_output(view, err);

	if (rc < 0)
		return rc;
	rc = written(view, view->options.format->trace(trace, &view->options.report, view->out), err);
	if (rc == 0)
		view->documents++;
	return rc;
}

/* Before anything is printed: whoever reads the output may stop reading. */
static int save(const struct view *view, const struct snapshot *snap, struct err *err)
{
	struct output output;
	int rc = output_open(&output, view->options.save, OUTPUT_SNAPSHOT, err);

	if (rc < 0)
		return rc;
	rc = output_empty(&output, err);
	if (rc == 0)
		rc = snapfile_write(snap, output.file, err);
	if (rc < 0)
		output_withdraw(&output);
	return rc < 0 ? rc : output_close(&output, err);
}

static void open_names(struct view *view, struct notes *notes)
{
	struct name_options *naming = &view->options.naming;

	name_options_open(naming);
	if (naming->cache_error.code && view->options.report.verbose)
		notes_add(notes, "%s", naming->cache_error.msg);
	if (naming->debuginfod_error.code)
		notes_add(notes, "%s", naming->debuginfod_error.msg);
}

static int name_stacks(struct view *view, struct tracing *tracing, struct err *err, struct trace **out)
{
	struct tracing_names names = {
		.native = {.demangle = !view->options.no_demangle},
		.kernel = view->options.report.kernel,
		.raw = view->options.raw,
	};
	_cleanup_(notes_deinit) struct notes notes = {0};
	int rc = view->options.save ? save(view, tracing_snapshot(tracing), err) : 0;

	if (rc < 0)
		return rc;
	if (view->options.save)
		tracing_saved(tracing);
	open_names(view, &notes);
	names.native.symbols = view->options.naming.symbols;
	rc = tracing_name(tracing, &names, err, out);
	if (rc < 0)
		return rc;
	selection_apply(&view->options.selection, *out);
	notes_add_all(&(*out)->notes, &notes);
	view->incomplete |= patience_tell(&(*out)->notes);
	view->incomplete |= !trace_is_complete(*out);
	return 0;
}

int view_show(struct view *view, struct tracing *tracing, struct err *err)
{
	_cleanup_(cleanup_tracing) struct tracing *owned = tracing;
	struct trace *trace;
	int rc = name_stacks(view, owned, err, &trace);

	if (rc < 0)
		return rc;
	if (view->options.format->traces)
		return hold(view, steal_ptr(owned), trace, err);
	return write_report(view, trace, err);
}
