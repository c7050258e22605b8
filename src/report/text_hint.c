/* SPDX-License-Identifier: MIT */
#include "report/text_hint.h"

#include <string.h>

#include "report/nameless.h"

enum maker { MAKER_JAVA, MAKER_NODE, MAKER_PYTHON, MAKER_OTHER, MAKERS };

/* By the program, as the main thread may have any name. */
static enum maker maker_of(const struct snapshot *snap)
{
	static const char *const starts[MAKER_OTHER] = {
		[MAKER_JAVA] = "java", [MAKER_NODE] = "node", [MAKER_PYTHON] = "python"};
	const char *program = snap->exe ? path_tail(snap->exe, 1) : snap->comm ? snap->comm : "";

	for (int i = 0; i < MAKER_OTHER; i++)
		if (strncmp(program, starts[i], strlen(starts[i])) == 0)
			return i;
	return MAKER_OTHER;
}

/* Python's functions are data of its own function that executes them; unless they are known, that is what is shown. */
static bool is_interpreted(const struct stack *stack)
{
	bool found = false;

	for (size_t i = 0; stack && i < stack->len; i++) {
		if (stack->data[i].kind == FRAME_KIND_PYTHON)
			return false;
		found |= stack->data[i].symbol && strncmp(stack->data[i].symbol, "_PyEval_EvalFrame", 17) == 0;
	}
	return found;
}

static bool lacks_names(const struct trace *trace, enum maker maker)
{
	bool found = false;

	for (size_t i = 0; !found && i < trace->threads.len; i++) {
		const struct stack *user = trace->threads.data[i].user;

		found = nameless_code_is_in(user) || (maker == MAKER_PYTHON && is_interpreted(user));
	}
	return found;
}

static void put_advice(FILE *out, enum maker maker, const struct snapshot *snap)
{
	switch (maker) {
	case MAKER_JAVA:
		fprintf(out,
			"code made by Java has no names: `jcmd %d Compiler.perfmap` (17 and later) writes them, then "
			"look again",
			(int)snap->pid);
		return;
	case MAKER_NODE:
		fputs("code made by Node.js has no names: start it with --perf-basic-prof "
		      "--interpreted-frames-native-stack",
		      out);
		return;
	case MAKER_PYTHON:
		fputs("functions of Python have no names: start it with -X perf (3.12 and later)", out);
		return;
	default:
		fputs("code made at run time has no names: see CODE MADE AT RUN TIME in stakeout(1)", out);
	}
}

void text_hints(const struct text *t, const struct trace *const *traces, size_t n)
{
	bool given[MAKERS] = {false};

	for (size_t i = 0; i < n; i++) {
		const struct snapshot *snap = traces[i]->snap;
		enum maker maker = maker_of(snap);

		if (given[maker] || !lacks_names(traces[i], maker))
			continue;
		given[maker] = true;
		text_style(t, STYLE_DIM);
		fputc('\n', t->out);
		put_advice(t->out, maker, snap);
		text_style(t, STYLE_PLAIN);
		fputc('\n', t->out);
	}
}
