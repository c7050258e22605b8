/* SPDX-License-Identifier: MIT */
#include "cmd/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/parse.h"
#include "cmd/parsing.h"
#include "cmd/render.h"
#include "cmd/terminal.h"
#include "model/snapfile.h"
#include "target/patience.h"
#include "wait/graph.h"
#include "wait/waits.h"

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
	DEBUG_HELP "  -h, --help             this text\n";

/* What a parser is made for. */
struct view_work {
	struct view *view;
	int (*open)(void *arg, struct view *view, struct err *err); /* opens what is to be shown; NULL: it is held already */
	void *arg;
	int fd; /* from which it is opened */
};

void view_init(struct view *view)
{
	*view = (struct view){.options = {.format = &report_format_text, .report = {.group = true, .kernel = true}}};
}

static void release(struct view *view)
{
	for (size_t i = 0; !view->borrows && i < view->held.len; i++)
		tracing_destroy(view->held.data[i]);
	view->held.len = view->traces.len = 0;
}

void view_deinit(struct view *view)
{
	output_close(&view->output, NULL);
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

/* What is in a file stays until there is something to write. */
static int open_output(struct view *view, struct err *err)
{
	int rc;

	if (view->output.file)
		return 0;
	rc = output_open(&view->output, view->options.output, OUTPUT_REPORT, err);
	if (rc < 0)
		return rc;
	view->options.report.color = view_has_color(&view->options, view->output.file);
	view_fit_terminal(&view->options, view->output.file);
	return 0;
}

static int written(int rc, FILE *out, struct err *err)
{
	if (rc == 0 && fflush(out) != 0)
		rc = -errno;
	return rc < 0 ? err_set(err, -rc, "writing the output: %s", strerror(-rc)) : 0;
}

static int begin_output(struct view *view, struct err *err)
{
	int rc = view->documents ? 0 : output_empty(&view->output, err);

	if (rc == 0 && view->documents && view->options.format->traces && !view->writer.write)
		fputc('\n', view->output.file);
	return rc;
}

static int put_report(const struct view *view, int fd, struct err *err)
{
	return view->options.picture ? render_svg(fd, fileno(view->output.file), err) : output_copy(&view->output, fd, err);
}

/* For struct parsing: the report that a parser has written. */
static int print(void *arg, int fd, struct err *err)
{
	struct view *view = ((struct view_work *)arg)->view;
	int rc = begin_output(view, err);

	if (rc == 0)
		rc = put_report(view, fd, err);
	if (rc == 0)
		view->documents += (unsigned)view->held.len + !view->held.len;
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

static void add_name_notes(const struct view *view, struct notes *notes)
{
	const struct name_options *naming = &view->options.naming;

	if (naming->cache_error.code && view->options.report.verbose)
		notes_add(notes, "%s", naming->cache_error.msg);
	if (naming->debuginfod_error.code)
		notes_add(notes, "%s", naming->debuginfod_error.msg);
}

static int name_stacks(struct view *view, struct tracing *tracing, bool bare, struct err *err, bool *incomplete)
{
	const struct tracing_names names = {
		.native = {.demangle = !view->options.no_demangle, .bare = bare, .symbols = view->options.naming.symbols},
		.kernel = view->options.report.kernel,
		.raw = view->options.raw || bare,
	};
	struct trace *trace;
	int rc = tracing_name(tracing, &names, err, &trace);

	if (rc < 0)
		return rc;
	selection_apply(&view->options.selection, trace);
	add_name_notes(view, &trace->notes);
	*incomplete |= patience_tell(&trace->notes);
	*incomplete |= !trace_is_complete(trace);
	return vec_push(&view->traces, trace) ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int write_why(const struct view *view, const struct deadlocks *deadlocks, FILE *out, bool *deadlock, bool *incomplete)
{
	const struct trace *const *traces = (const struct trace *const *)view->traces.data;

	*deadlock = deadlocks_has_proved(deadlocks);
	*incomplete |= deadlocks->maybe_more || deadlocks_has_likely(deadlocks);
	return view->options.format->why(traces, view->traces.len, deadlocks, &view->options.report, out);
}

static int write_report(const struct view *view, FILE *out, bool *deadlock, bool *incomplete)
{
	const struct report_format *format = view->options.format;
	const struct trace *const *traces = (const struct trace *const *)view->traces.data;
	_cleanup_(deadlocks_deinit) struct deadlocks deadlocks = {0};
	int rc = 0;

	waits_find_among(view->traces.data, view->traces.len);
	if (view->writer.write)
		return view->writer.write(view->writer.arg, view, out, deadlock, incomplete);
	if (!deadlocks_find(traces, view->traces.len, &deadlocks))
		return -ENOMEM;
	if (view->options.why)
		return write_why(view, &deadlocks, out, deadlock, incomplete);
	if (format->traces)
		return format->traces(traces, view->traces.len, &deadlocks, &view->options.report, out);
	for (size_t i = 0; rc == 0 && i < view->traces.len; i++)
		rc = format->trace(traces[i], &deadlocks, &view->options.report, out);
	return rc;
}

/* For struct parsing: in the parser. */
static int parse(void *arg, struct parsing *parsing, struct err *err)
{
	struct view_work *work = arg;
	struct view *view = work->view;
	struct err *sandbox = &parsing->outcome->sandbox;
	int rc = work->open ? work->open(work->arg, view, err) : 0;

	for (size_t i = 0; rc == 0 && i < view->held.len; i++)
		rc = name_stacks(view, view->held.data[i], false, err, &parsing->outcome->incomplete);
	if (rc == 0 && sandbox->code && view->options.report.verbose)
		notes_add(&view->traces.data[0]->notes, "names are looked up with more rights than needed: %s", sandbox->msg);
	if (rc == 0)
		rc = written(write_report(view, parsing->report, &parsing->outcome->deadlock, &parsing->outcome->incomplete), parsing->report, err);
	if (rc == 0)
		rc = parsing_hand_over(parsing, err);
	for (size_t i = 0; i < view->held.len; i++)
		tracing_keep_names(view->held.data[i]);
	return rc;
}

/* A picture is made of what is in a file. */
static int put_bare(struct view *view, struct err *err)
{
	_cleanup_fclose_ FILE *graph = view->options.picture ? tmpfile() : NULL;
	FILE *out = graph ? graph : view->output.file;
	int rc;

	if (view->options.picture && !graph)
		return err_set(err, errno, "making a temporary file: %s", strerror(errno));
	rc = written(write_report(view, out, &view->deadlock, &view->incomplete), out, err);
	if (rc == 0 && graph) {
		rewind(graph);
		rc = put_report(view, fileno(graph), err);
	}
	return rc;
}

/* There is no parser, or it has died: what is known without reading anything more. */
static int show_bare(struct view *view, const struct err *why, struct err *err)
{
	char words[PARSING_WORDS];
	int rc = 0;

	parsing_explain(why, words);

	view->incomplete = true;
	for (size_t i = 0; rc == 0 && i < view->held.len; i++) {
		rc = name_stacks(view, view->held.data[i], true, err, &view->incomplete);
		if (rc == 0)
			notes_add(&view->traces.data[i]->notes, "%s", words);
	}
	if (rc == 0)
		rc = begin_output(view, err);
	if (rc == 0)
		rc = put_bare(view, err);
	if (rc == 0)
		view->documents += (unsigned)view->held.len;
	return rc;
}

/* What the parser says counts if it has lived to its end; a report that was handed over counts in any case. */
static int judge(struct view *view, const struct parsing *parsing, int rc, const struct err *how, struct err *err)
{
	if (parsing->printed) {
		view->incomplete |= parsing->outcome->incomplete;
		view->deadlock |= parsing->outcome->deadlock;
		*err = parsing->print_error;
		return parsing->print_error.code ? -parsing->print_error.code : 0;
	}
	if (rc < 0 && view->held.len)
		return show_bare(view, how, err);
	if (rc == -EOWNERDEAD)
		return err_set(err, EOWNERDEAD, "the process that reads it has died (%s); please report that", how->msg);
	if (rc < 0)
		return err_set(err, -rc, "%s", how->msg);
	return err_set(err, parsing->outcome->err.code ? parsing->outcome->err.code : EIO, "%s", parsing->outcome->err.msg);
}

static int show(struct view_work *work, struct err *err)
{
	struct view *view = work->view;
	struct parsing parsing = {.work = parse, .print = print, .arg = work, .keep_fd = work->fd};
	VEC(const struct target *) targets = {0};
	struct err how = {0};
	int rc = open_output(view, err);

	name_options_open(&view->options.naming);
	for (size_t i = 0; rc == 0 && i < view->held.len; i++) {
		tracing_go_on(view->held.data[i]);
		if (!vec_push(&targets, tracing_target(view->held.data[i])))
			rc = err_set(err, ENOMEM, "out of memory");
	}
	if (rc == 0) {
		parsing.files = (struct file_scope){.targets = targets.data, .n = targets.len};
		parsing.symbols = view->options.naming.symbols;
		rc = judge(view, &parsing, parsing_run(&parsing, &how), &how, err);
		parsing_end(&parsing);
	}
	vec_deinit(&targets);
	release(view);
	return rc;
}

int view_show_opened(struct view *view, int fd, int (*open)(void *arg, struct view *view, struct err *err), void *arg,
		     struct err *err)
{
	return show(&(struct view_work){.view = view, .open = open, .arg = arg, .fd = fd}, err);
}

int view_finish(struct view *view, struct err *err)
{
	return view->held.len ? show(&(struct view_work){.view = view}, err) : 0;
}

int view_finish_bare(struct view *view, struct err *err)
{
	int rc = open_output(view, err);

	view->held.len = 0;
	if (rc == 0)
		rc = begin_output(view, err);
	if (rc == 0)
		rc = written(write_report(view, view->output.file, &view->deadlock, &view->incomplete), view->output.file, err);
	view->documents += rc == 0;
	return rc;
}

/* So many processes are shown as one: each takes memory, and half a dozen descriptors. */
enum { MAX_HELD = 64 };

int view_hold(struct view *view, struct tracing *tracing, struct err *err)
{
	if (vec_push(&view->held, tracing))
		return 0;
	tracing_destroy(tracing);
	return err_set(err, ENOMEM, "out of memory");
}

int view_show(struct view *view, struct tracing *tracing, struct err *err)
{
	_cleanup_(cleanup_tracing) struct tracing *owned = tracing;
	int rc = view->options.save ? save(view, tracing_snapshot(owned), err) : 0;

	if (rc < 0)
		return rc;
	if (view->options.save)
		tracing_saved(owned);
	tracing_rest(owned);
	rc = view_hold(view, steal_ptr(owned), err);
	if (rc < 0)
		return rc;
	return (view->options.why || view->options.format->traces) && view->held.len < MAX_HELD ? 0 : view_finish(view, err);
}
