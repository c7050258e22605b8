/* SPDX-License-Identifier: MIT */
#include "cmd/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "report/json_writer.h"
#include "report/text_format.h"
#include "symbol/lookups.h"
#include "symbol/readable.h"

enum { MAX_DIRECT = 1024 }; /* bytes of a name that is written as it is in its file */

struct answers {
	struct answer_format format;
	const struct symbol_options *symbols;
	struct jit_names *jit; /* or NULL */
	FILE *out;
	struct arena *arena;
	struct readable *names;
	struct calls found; /* of the address being looked up */
	struct calls all;   /* of all addresses, one after the other */
	VEC(size_t) counts; /* how many calls each address has */
	struct calls calls; /* of the address being answered: borrowed from `all` */
	char problem[100];
};

DEFINE_CLEANUP(answers, struct answers *, answers_destroy)

struct answers *answers_create(const struct answer_format *format, const struct symbol_options *symbols,
			       struct jit_names *jit, FILE *out)
{
	_cleanup_(cleanup_answers) struct answers *answers = calloc(1, sizeof(*answers));

	if (!answers)
		return NULL;
	answers->format = *format;
	answers->symbols = symbols;
	answers->jit = jit;
	answers->out = out;
	answers->arena = arena_create();
	answers->names = answers->arena ? readable_create(answers->arena, true) : NULL;
	return answers->names ? steal_ptr(answers) : NULL;
}

void answers_destroy(struct answers *answers)
{
	if (!answers)
		return;
	vec_deinit(&answers->found);
	vec_deinit(&answers->all);
	vec_deinit(&answers->counts);
	readable_destroy(answers->names);
	arena_destroy(answers->arena);
	free(answers);
}

static const char *plt_name(struct answers *answers, const char *name)
{
	_cleanup_free_ char *text = NULL;

	return asprintf(&text, "%s@plt", name) < 0 ? NULL : arena_intern(answers->arena, text);
}

/* The linker's name, interned; NULL when there is none. */
static const char *linkage_name(struct answers *answers, const struct call *call)
{
	return call->linkage_len ? arena_intern_n(answers->arena, call->linkage, call->linkage_len) : NULL;
}

/* NULL when it has none. addr2line goes by the linker's name where there is one. */
static const char *call_name(struct answers *answers, const struct call *call)
{
	const char *linkage = linkage_name(answers, call), *name = linkage ? linkage : call->name;

	if (!name || !*name)
		return NULL;
	if (answers->format.demangle && linkage)
		name = readable_name(answers->names, linkage);
	return call->plt ? plt_name(answers, name) : name;
}

static const char *call_file(const struct answers *answers, const struct call *call)
{
	const char *slash = answers->format.basenames && call->file ? strrchr(call->file, '/') : NULL;

	return slash ? slash + 1 : call->file;
}

/* Thousands of answers a run: no format string is parsed for them, and the stream is ours alone. */
static void put(struct answers *answers, const char *text)
{
	fputs_unlocked(text, answers->out);
}

/* A name or path: what a file has in there is nothing that a terminal should obey. */
static void put_foreign(struct answers *answers, const char *text)
{
	const struct text out = {.out = answers->out};

	if (answers->format.escape)
		text_untrusted(&out, text);
	else
		put(answers, text);
}

static void put_number(struct answers *answers, uint64_t value, unsigned base, unsigned digits)
{
	char text[24];
	size_t at = sizeof(text);

	do {
		text[--at] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value || sizeof(text) - at < digits);
	fwrite_unlocked(text + at, 1, sizeof(text) - at, answers->out);
}

static void put_name(struct answers *answers, const struct call *call)
{
	const char *name;

	/* One that is longer might be written straight from its file, parts of which may be gone by then. */
	if (call->linkage_len && call->linkage_len <= MAX_DIRECT && !call->plt && !answers->format.demangle &&
	    !answers->format.escape) {
		fwrite_unlocked(call->linkage, 1, call->linkage_len, answers->out);
		return;
	}
	name = call_name(answers, call);
	put_foreign(answers, name ? name : "??");
}

static void write_call(struct answers *answers, const struct call *call)
{
	const char *file = call_file(answers, call);

	if (answers->format.functions) {
		put_name(answers, call);
		put(answers, answers->format.pretty ? " at " : "\n");
	}
	put_foreign(answers, file ? file : "??");
	put(answers, ":");
	if (call->line)
		put_number(answers, call->line, 10, 1);
	else
		put(answers, "?");
	put(answers, "\n");
}

static void write_text(struct answers *answers, const struct question *question)
{
	const struct answer_format *format = &answers->format;
	size_t shown = format->inlines || !answers->calls.len ? answers->calls.len : 1;

	if (format->addresses) {
		put(answers, "0x");
		put_number(answers, question->address, 16, format->digits);
		put(answers, format->pretty ? ": " : "\n");
	}
	for (size_t i = 0; i < shown; i++) {
		if (i && format->pretty)
			put(answers, " (inlined by) ");
		write_call(answers, &answers->calls.data[i]);
	}
	if (shown)
		return;
	if (format->functions)
		put(answers, format->pretty ? "?? " : "??\n");
	put(answers, "??:0\n");
}

static void write_json_call(struct answers *answers, struct json *j, const struct question *question,
			    const struct call *call, bool inlined)
{
	const char *name = call_name(answers, call);

	json_object(j, NULL);
	json_string(j, "symbol", name);
	json_string(j, "symbol_source", name ? symbol_source_name(call->source) : NULL);
	if (name && call->has_start && call->start <= question->vaddr)
		json_uint(j, "offset", question->vaddr - call->start);
	else
		json_null(j, "offset");
	json_bool(j, "inlined", inlined);
	if (call->file) {
		json_object(j, "source");
		json_string(j, "file", call_file(answers, call));
		json_uint(j, "line", call->line);
		json_uint(j, "column", call->column);
		json_object_end(j);
	} else {
		json_null(j, "source");
	}
	json_object_end(j);
}

/* Why the answer is less than it could be, and what would help; NULL when it is whole, or nothing is known to. */
static const char *find_problem(struct answers *answers, const struct question *question, const char **help)
{
	static const char unknown[] = "neither a function nor a line is known for this address";
	const struct calls *calls = &answers->calls;
	const struct module *module = question->module;

	*help = NULL;
	if (!question->is_address) {
		snprintf(answers->problem, sizeof(answers->problem), "not an address: %.*s", (int)question->len,
			 question->text);
		return answers->problem;
	}
	if (!module)
		return "no file is there";
	if (calls->len && calls->data[0].file)
		return NULL;
	if (module->info.problem) {
		*help = module->info.help;
		return module->info.problem;
	}
	return calls->len ? "no line is known for this address" : unknown;
}

static void write_json(struct answers *answers, const struct question *question)
{
	const struct module_info *info = question->is_address && question->module ? &question->module->info : NULL;
	const char *help, *problem = find_problem(answers, question, &help);
	struct json j = {.out = answers->out};

	json_object(&j, NULL);
	json_string(&j, "schema", "stakeout.symbolize/1");
	if (question->is_address)
		json_hex(&j, "address", question->address);
	else
		json_null(&j, "address");
	json_string(&j, "module", info ? info->path : NULL);
	json_string(&j, "build_id", info ? info->build_id : NULL);
	if (info)
		json_hex(&j, "module_offset", question->vaddr);
	else
		json_null(&j, "module_offset");
	json_array(&j, "frames");
	for (size_t i = 0; i < answers->calls.len; i++)
		write_json_call(answers, &j, question, &answers->calls.data[i], i + 1 < answers->calls.len);
	json_array_end(&j);
	json_string(&j, "problem", problem);
	json_string(&j, "help", help);
	json_object_end(&j);
	fputc('\n', answers->out);
}

static void read_modules(struct answers *answers, const struct question *questions, size_t n)
{
	struct lookups lookups = {0};

	for (size_t i = 0; i < n; i++)
		if (questions[i].module && !lookups_add(&lookups, questions[i].module, questions[i].vaddr))
			break;
	lookups_prepare(&lookups, answers->symbols);
	lookups_deinit(&lookups);
}

/* Leaves the calls in answers->found. */
static void find(struct answers *answers, const struct question *question)
{
	struct module *module = question->is_address || !answers->format.json ? question->module : NULL;
	struct module_symbols *symbols = module ? module_symbols(module, answers->symbols) : NULL;

	if (symbols && module_symbols_find(symbols, question->vaddr, &answers->found))
		return;
	if (!answers->jit || !question->is_address || !jit_names_find(answers->jit, question->address, &answers->found))
		answers->found.len = 0;
}

/* What does not fit into memory is answered as not known. */
static void find_all(struct answers *answers, const struct question *questions, size_t n)
{
	answers->all.len = answers->counts.len = 0;
	for (size_t i = 0; i < n; i++) {
		size_t count = 0;

		find(answers, &questions[i]);
		if (!vec_push(&answers->counts, 0))
			return;
		while (count < answers->found.len && vec_push(&answers->all, answers->found.data[count]))
			count++;
		answers->counts.data[i] = count;
	}
}

static void demangle_all(struct answers *answers)
{
	for (size_t i = 0; i < answers->all.len; i++) {
		const char *linkage = linkage_name(answers, &answers->all.data[i]);

		if (linkage && !readable_want(answers->names, linkage))
			break;
	}
	readable_prepare(answers->names);
}

void answers_write(struct answers *answers, const struct question *questions, size_t n)
{
	struct call *calls;

	read_modules(answers, questions, n);
	find_all(answers, questions, n);
	if (answers->format.demangle)
		demangle_all(answers);
	calls = answers->all.data;
	for (size_t i = 0; i < n; i++) {
		answers->calls =
			(struct calls){.data = calls, .len = i < answers->counts.len ? answers->counts.data[i] : 0};
		calls += answers->calls.len;
		if (answers->format.json)
			write_json(answers, &questions[i]);
		else
			write_text(answers, &questions[i]);
	}
}
