/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "cmd/answer.h"
#include "cmd/cmd.h"
#include "cmd/interrupt.h"
#include "cmd/name_options.h"
#include "cmd/parse.h"
#include "cmd/parsing.h"
#include "cmd/process_args.h"
#include "symbol/subject.h"
#include "target/patience.h"

enum {
	INPUT_BLOCK = 256 << 10,
	OUTPUT_BUFFER = 256 << 10,
};

/* clang-format off */
static const char help[] =
	"Usage: stakeout symbolize -e FILE [OPTION…] [ADDRESS…]\n"
	"       stakeout symbolize -p PROCESS [OPTION…] [ADDRESS…]\n"
	"       stakeout symbolize --build-id ID [OPTION…] [ADDRESS…]\n"
	"\n"
	"Names the functions, files and lines of addresses, as addr2line does. Addresses are hexadecimal,\n"
	"with or without 0x; when there are none on the command line, they are read from standard input,\n"
	"one a line.\n"
	"\n"
	"What the addresses belong to:\n"
	"  -e, --exe FILE         a program, library or debug file\n"
	"      --pid PROCESS      a running process, by pid or name: addresses as it sees them. Without -e\n"
	"                         or --build-id also -p PROCESS\n"
	"      --build-id ID      the file with this build-id, installed or from a debuginfod server\n"
	"  -j, --section NAME     addresses count from the start of this section of the file\n"
	"\n"
	"Output:\n"
	"  -a, --addresses        show the address first\n"
	"  -f, --functions        show the function\n"
	"  -i, --inlines          also show the callers that the code was inlined into\n"
	"  -C, --demangle         show C++, Rust and D names as in the source; --demangle=none: as the\n"
	"                         linker has them\n"
	"      --no-demangle      the same as --demangle=none, the default\n"
	"  -s, --basenames        show files without their directories\n"
	"  -p, --pretty-print     one line for each function (as -p only with -e, --build-id or --pid)\n"
	"      --json             one JSON object for each address, one per line, with all that is known\n"
	NAME_HELP
	DEBUG_HELP "  -h, --help             this text\n";
/* clang-format on */

enum { OPT_PID = 1, OPT_BUILD_ID, OPT_JSON, OPT_NO_DEMANGLE, OPT_PRETTY };

static const struct option long_options[] = {
	{"exe", required_argument, NULL, 'e'},
	{"pid", required_argument, NULL, OPT_PID},
	{"build-id", required_argument, NULL, OPT_BUILD_ID},
	{"section", required_argument, NULL, 'j'},
	{"addresses", no_argument, NULL, 'a'},
	{"functions", no_argument, NULL, 'f'},
	{"inlines", no_argument, NULL, 'i'},
	{"demangle", optional_argument, NULL, 'C'},
	{"no-demangle", no_argument, NULL, OPT_NO_DEMANGLE},
	{"basenames", no_argument, NULL, 's'},
	{"pretty-print", no_argument, NULL, OPT_PRETTY},
	{"json", no_argument, NULL, OPT_JSON},
	NAME_LONG_OPTIONS,
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* What -p means differs: see names_subject(). */
#define SHORT_OPTIONS "e:j:afiCshH"

struct options {
	const char *file;
	const char *section;
	struct process_args process;
	char build_id[SUBJECT_MAX_BUILD_ID + 1]; /* "": not given */
	struct answer_format format;
	struct name_options naming;
};

static int parse_style(const char *value, struct options *o, struct err *err)
{
	static const char *const words[] = {"none", "auto", NULL};
	int word = value ? parse_word("--demangle", value, words, err) : 1;

	o->format.demangle = word == 1;
	return word < 0 ? word : 0;
}

static int parse_option(struct options *o, int opt, const char *value, struct err *err)
{
	switch (opt) {
	case 'e':
		o->file = value;
		return 0;
	case 'j':
		o->section = value;
		return 0;
	case OPT_PID:
		return process_args_add(&o->process, value, err);
	case OPT_BUILD_ID:
		return subject_parse_build_id(value, o->build_id, err);
	case 'a':
		o->format.addresses = true;
		return 0;
	case 'f':
		o->format.functions = true;
		return 0;
	case 'i':
		o->format.inlines = true;
		return 0;
	case 'C':
		return parse_style(value, o, err);
	case OPT_NO_DEMANGLE:
		o->format.demangle = false;
		return 0;
	case 's':
		o->format.basenames = true;
		return 0;
	case OPT_PRETTY:
		o->format.pretty = true;
		return 0;
	case 'p':
		if (value)
			return process_args_add(&o->process, value, err);
		o->format.pretty = true;
		return 0;
	case OPT_JSON:
		o->format.json = true;
		return 0;
	default:
		return name_options_take(&o->naming, opt, value, err);
	}
}

/*
 * addr2line's -p takes no value and means --pretty-print; everywhere else in this program -p takes a process. The
 * former holds when another option says what the addresses belong to. getopt reorders what it reads, so a copy is read.
 */
static bool names_subject(int argc, char **argv)
{
	_cleanup_free_ char **copy = calloc((size_t)argc + 1, sizeof(*copy));
	bool found = false;
	int opt;

	if (!copy)
		return false;
	memcpy(copy, argv, (size_t)argc * sizeof(*copy));
	opterr = 0;
	while ((opt = getopt_long(argc, copy, SHORT_OPTIONS "p", long_options, NULL)) != -1)
		found |= opt == 'e' || opt == OPT_BUILD_ID || opt == OPT_PID;
	opterr = 1;
	optind = 0; /* start again */
	return found;
}

/* -1 to go on, else the exit code. */
static int parse_arguments(int argc, char **argv, struct options *o)
{
	const char *short_options = names_subject(argc, argv) ? SHORT_OPTIONS "p" : SHORT_OPTIONS "p:";
	struct err err = {0};
	int opt;

	while ((opt = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		if (opt == '?')
			return cmd_misused(argv[0], "");
		if (opt == 'h' || opt == 'H') {
			fputs(help, stdout);
			return cmd_printed();
		}
		if (parse_option(o, opt, optarg, &err) < 0)
			return cmd_misused(argv[0], err.msg);
	}
	switch (!!o->file + !!o->process.len + !!o->build_id[0]) {
	case 0:
		return cmd_misused(argv[0], "give a file (-e), a process (-p) or a build-id (--build-id)");
	case 1:
		break;
	default:
		return cmd_misused(argv[0], "give only one of -e, --pid and --build-id");
	}
	if (o->process.len > 1)
		return cmd_misused(argv[0], "addresses are those of one process: give one");
	if (o->process.len && o->section)
		return cmd_misused(argv[0], "--section is for files, not for a process");
	return -1;
}

DEFINE_CLEANUP(subject, struct subject *, subject_destroy)
DEFINE_CLEANUP(answers, struct answers *, answers_destroy)

static int open_process(const struct process_args *process, struct err *err, struct subject **out)
{
	_cleanup_(notes_deinit) struct notes missing = {0};
	struct process_ids ids = {0};
	int rc = process_args_find(process, err, &ids, &missing);

	if (rc == 0 && ids.len)
		rc = subject_open_process(ids.data[0], err, out);
	else if (rc == 0)
		rc = err_set(err, ESRCH, "%s (-p means --pretty-print only together with -e, --build-id or --pid)",
			     missing.data[0]);
	vec_deinit(&ids);
	return rc;
}

static int open_file(const struct options *o, struct err *err, struct subject **out)
{
	int rc;

	if (o->file)
		rc = subject_open_file(o->file, err, out);
	else
		rc = subject_open_build_id(o->build_id, o->naming.symbols.debuginfod, err, out);
	return rc == 0 && o->section ? subject_use_section(*out, o->section, err) : rc;
}

/* Questions that came together are answered together. */
struct batch {
	struct subject *subject;
	struct answers *answers;
	VEC(struct question) questions;
};

/* Spaces, 0x, digits; what follows them does not count. */
static bool parse_address(const char *text, size_t len, uint64_t *out)
{
	const char *p = text, *end = text + len;
	bool any = false, overflow = false;
	uint64_t value = 0;

	while (p < end && isspace((unsigned char)*p))
		p++;
	if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
		p += 2;
	for (; p < end && isxdigit((unsigned char)*p); p++) {
		unsigned char c = (unsigned char)*p;

		any = true;
		overflow |= value >> 60 != 0;
		value = value << 4 | (uint64_t)(isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	*out = overflow ? UINT64_MAX : value;
	return any;
}

static bool batch_add(struct batch *batch, const char *text, size_t len)
{
	struct question question = {.text = text, .len = len};

	question.is_address = parse_address(text, len, &question.address);
	question.address = subject_clip(batch->subject, question.address);
	question.vaddr = question.address;
	question.module = subject_find(batch->subject, question.address, &question.vaddr);
	return vec_push(&batch->questions, question);
}

static int batch_answer(struct batch *batch, struct err *err)
{
	answers_write(batch->answers, batch->questions.data, batch->questions.len);
	batch->questions.len = 0;
	/* Whoever asks through a pipe waits for the answer. */
	if (fflush(stdout) != 0)
		return err_set(err, errno, "writing the output: %s", strerror(errno));
	return 0;
}

/* The standard input, cut into lines. */
struct input {
	char *block; /* of INPUT_BLOCK bytes */
	size_t len;
	bool ended;
	bool skip_line; /* the rest of a line longer than any address */
};

/* Waits for something to read, then takes all that is there already. */
static int input_fill(struct input *input, struct err *err)
{
	struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};

	do {
		ssize_t got = read(STDIN_FILENO, input->block + input->len, INPUT_BLOCK - input->len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, errno, "reading the standard input: %s", strerror(errno));
		input->ended = got == 0;
		input->len += (size_t)got;
	} while (!input->ended && input->len < INPUT_BLOCK && poll(&more, 1, 0) > 0);
	return 0;
}

/* Hands the whole lines to the batch, which keeps pointers into the block; returns how much of it they are. */
static ssize_t input_take_lines(struct input *input, struct batch *batch)
{
	char *line = input->block, *end = input->block + input->len;

	while (line < end) {
		char *newline = memchr(line, '\n', (size_t)(end - line));

		if (!newline && !input->ended && (size_t)(end - line) < INPUT_BLOCK)
			break;
		if (!input->skip_line && !batch_add(batch, line, (size_t)((newline ? newline : end) - line)))
			return -ENOMEM;
		input->skip_line = !newline;
		line = newline ? newline + 1 : end;
	}
	return line - input->block;
}

static int answer_input(struct batch *batch, struct err *err)
{
	_cleanup_free_ char *block = malloc(INPUT_BLOCK);
	struct input input = {.block = block};
	int rc = block ? 0 : err_set(err, ENOMEM, "out of memory");

	while (rc == 0 && !input.ended) {
		ssize_t taken;

		rc = input_fill(&input, err);
		if (rc < 0)
			break;
		taken = input_take_lines(&input, batch);
		if (taken < 0)
			return err_set(err, ENOMEM, "out of memory");
		rc = batch_answer(batch, err);
		input.len -= (size_t)taken;
		memmove(input.block, input.block + taken, input.len);
	}
	return rc;
}

/* What is asked. */
struct inquiry {
	struct options *options;
	char **addresses;
	struct subject *process; /* opened before rights are given up; NULL: it is about a file */
};

/* For struct parsing: in the parser. */
static int answer(void *arg, struct parsing *parsing, struct err *err)
{
	const struct inquiry *inquiry = arg;
	const struct options *o = inquiry->options;
	char **addresses = inquiry->addresses;
	_cleanup_(cleanup_subject) struct subject *opened = NULL;
	_cleanup_(cleanup_answers) struct answers *answers = NULL;
	struct answer_format format = o->format;
	struct subject *subject;
	struct batch batch = {0};
	int rc = inquiry->process ? 0 : open_file(o, err, &opened);

	if (rc < 0)
		return rc;
	subject = inquiry->process ? inquiry->process : opened;
	format.digits = subject_digits(subject);
	answers = answers_create(&format, &o->naming.symbols, subject_jit_names(subject), stdout);
	if (!answers)
		return err_set(err, ENOMEM, "out of memory");
	batch.subject = subject;
	batch.answers = answers;
	for (char **address = addresses; rc == 0 && *address; address++)
		if (!batch_add(&batch, *address, strlen(*address)))
			rc = err_set(err, ENOMEM, "out of memory");
	if (rc == 0)
		rc = *addresses ? batch_answer(&batch, err) : answer_input(&batch, err);
	vec_deinit(&batch.questions);
	if (inquiry->process)
		subject_keep_names(inquiry->process);
	return rc;
}

static int judge(const struct parsing *parsing, int rc, struct err *err)
{
	if (rc == -EOWNERDEAD)
		return err_prefix(err, "the process that reads files has died; please report that");
	if (rc == 0 && parsing->outcome->rc < 0) {
		*err = parsing->outcome->err;
		rc = err->code ? -err->code : -EIO;
	}
	return rc;
}

static int symbolize(struct options *o, char **addresses, struct err *err)
{
	_cleanup_(cleanup_subject) struct subject *process = NULL;
	struct inquiry inquiry = {.options = o, .addresses = addresses};
	struct parsing parsing = {.work = answer, .arg = &inquiry, .symbols = o->naming.symbols};
	const struct target *target;
	int rc = o->process.len ? open_process(&o->process, err, &process) : 0;

	if (rc < 0)
		return rc;
	o->format.escape = isatty(STDOUT_FILENO);
	inquiry.process = process;
	target = process ? subject_target(process) : NULL;
	parsing.files = (struct file_scope){.targets = &target, .n = process ? 1 : 0};
	rc = judge(&parsing, parsing_run(&parsing, err), err);
	parsing_end(&parsing);
	return rc;
}

/* What did not answer; false when all did. */
static bool complain_of_silence(void)
{
	_cleanup_(notes_deinit) struct notes notes = {0};
	bool any = patience_tell(&notes);

	for (size_t i = 0; i < notes.len; i++)
		cmd_complain(notes.data[i]);
	return any;
}

int cmd_symbolize(int argc, char **argv)
{
	struct options o = {0};
	struct err err = {0};
	int code = parse_arguments(argc, argv, &o), rc;
	char *buffer;

	if (code < 0)
		code = cmd_check_proc();
	if (code >= 0) {
		process_args_deinit(&o.process);
		return code;
	}
	/* It belongs to the stream, which is flushed after the end of this function. */
	buffer = malloc(OUTPUT_BUFFER);
	if (buffer)
		setvbuf(stdout, buffer, _IOFBF, OUTPUT_BUFFER);
	name_options_open(&o.naming);
	if (o.naming.debuginfod_error.code)
		cmd_complain(o.naming.debuginfod_error.msg);
	interrupt_catch();
	rc = symbolize(&o, argv + optind, &err);
	name_options_deinit(&o.naming);
	process_args_deinit(&o.process);
	if (rc == -EPIPE)
		raise(SIGPIPE);
	if (rc < 0) {
		cmd_complain(err.msg);
		return rc == -EOWNERDEAD ? EXIT_INCOMPLETE : EXIT_NOTHING;
	}
	return complain_of_silence() ? EXIT_INCOMPLETE : EXIT_COMPLETE;
}
