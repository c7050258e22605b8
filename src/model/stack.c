/* SPDX-License-Identifier: MIT */
#include "model/stack.h"

#include <string.h>

#include "base/hash.h"

const char *stack_end_name(enum stack_end end)
{
	static const char *const names[STACK_END_COUNT] = {
		[STACK_COMPLETE] = "complete",
		[STACK_NO_UNWIND_INFO] = "no_unwind_info",
		[STACK_COPY_LIMIT] = "stack_copy_limit",
		[STACK_UNREADABLE] = "unreadable_memory",
		[STACK_NO_PROGRESS] = "no_progress",
		[STACK_DEPTH_LIMIT] = "depth_limit",
		[STACK_MISSING_REGISTER] = "missing_register",
		[STACK_NOT_CAPTURED] = "not_captured",
		[STACK_DOUBTFUL] = "doubtful",
	};

	return names[end];
}

const char *frame_kind_name(enum frame_kind kind)
{
	static const char *const names[FRAME_KIND_COUNT] = {
		[FRAME_KIND_NATIVE] = "native",
		[FRAME_KIND_KERNEL] = "kernel",
		[FRAME_KIND_SIGNAL] = "signal",
		[FRAME_KIND_PYTHON] = "python",
		[FRAME_KIND_JAVA] = "java",
		[FRAME_KIND_JS] = "js",
		[FRAME_KIND_STUB] = "stub",
		[FRAME_KIND_MARKER] = "marker",
	};

	return names[kind];
}

const char *frame_kind_mark(enum frame_kind kind)
{
	switch (kind) {
	case FRAME_KIND_PYTHON:
		return "py";
	case FRAME_KIND_JAVA:
	case FRAME_KIND_JS:
	case FRAME_KIND_STUB:
		return frame_kind_name(kind);
	case FRAME_KIND_MARKER:
		return "--";
	default:
		return NULL;
	}
}

const char *line_kind_name(enum line_kind kind)
{
	static const char *const names[LINE_KIND_COUNT] = {
		[LINE_CURRENT] = "current",
		[LINE_APPROXIMATE] = "approximate",
		[LINE_DEFINITION] = "definition",
	};

	return names[kind];
}

const char *symbol_source_name(enum symbol_source source)
{
	static const char *const names[SYMBOL_SOURCE_COUNT] = {
		[SYMBOL_SYMTAB] = "symtab",   [SYMBOL_DYNSYM] = "dynsym",     [SYMBOL_MINIDEBUG] = "gnu_debugdata",
		[SYMBOL_PLT] = "plt",         [SYMBOL_DWARF] = "dwarf",       [SYMBOL_GO] = "gopclntab",
		[SYMBOL_GDB_JIT] = "gdb_jit", [SYMBOL_JITDUMP] = "jitdump",   [SYMBOL_PERF_MAP] = "perf_map",
		[SYMBOL_KERNEL] = "kernel",   [SYMBOL_KALLSYMS] = "kallsyms", [SYMBOL_RUNTIME] = "runtime",
	};

	return names[source];
}

/* The first from there on that was not inlined; the length when there is none. */
static size_t next_function(const struct stack *stack, size_t i)
{
	while (i < stack->len && stack->data[i].inlined)
		i++;
	return i;
}

static bool same_function(const struct frame *a, const struct frame *b)
{
	if (a->kind != b->kind || a->module != b->module)
		return false;
	return a->symbol && b->symbol ? strcmp(a->symbol, b->symbol) == 0
				      : !a->symbol && !b->symbol && a->address == b->address;
}

bool stack_same_functions(const struct stack *a, const struct stack *b)
{
	size_t i = next_function(a, 0), j = next_function(b, 0);

	while (i < a->len && j < b->len && same_function(&a->data[i], &b->data[j])) {
		i = next_function(a, i + 1);
		j = next_function(b, j + 1);
	}
	return i == a->len && j == b->len;
}

uint64_t stack_hash_functions(const struct stack *stack)
{
	uint64_t hash = HASH_SEED;

	for (size_t i = next_function(stack, 0); i < stack->len; i = next_function(stack, i + 1)) {
		const struct frame *frame = &stack->data[i];

		hash = frame->symbol ? hash_bytes(hash, frame->symbol, strlen(frame->symbol))
				     : hash_u64(hash, frame->address);
	}
	return hash;
}

const char *name_without_package(const char *name)
{
	const char *method = strrchr(name, '.'), *start = method ? method : name;

	while (start > name && start[-1] != '.')
		start--;
	return start;
}

static const char *after(const char *s, const char *start)
{
	const size_t len = strlen(start);

	return strncmp(s, start, len) == 0 ? s + len : NULL;
}

const char *name_in_library(const char *symbol)
{
	for (;;) {
		if (symbol[0] == '_')
			symbol++;
		else if (strncmp(symbol, "GI_", 3) == 0)
			symbol += 3;
		else if (strncmp(symbol, "libc_", 5) == 0)
			symbol += 5;
		else
			return symbol;
	}
}

bool name_is_kernel_function(const char *symbol, const char *name)
{
	const size_t len = strcspn(name, "*");

	return symbol[0] == name[0] && strncmp(symbol, name, len) == 0 && (name[len] || strchr(".+", symbol[len])); /* or its end */
}

bool name_is_library_function(const char *symbol, const char *name)
{
	static const char *const endings[] = {"_time", "64"};
	const char *rest = after(name_in_library(symbol), name);

	for (size_t i = 0; rest && i < sizeof(endings) / sizeof(endings[0]); i++)
		rest = after(rest, endings[i]) ? after(rest, endings[i]) : rest;
	return rest && (!*rest || *rest == '@' || *rest == '.');
}

bool name_is_library_plumbing(const char *symbol)
{
	static const char *const starts[] = {"syscall_c", "internal_syscall_c", "cp_"};
	const char *inner = name_in_library(symbol);

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (after(inner, starts[i]))
			return true;
	return false;
}
