/* SPDX-License-Identifier: MIT */
#include "model/stack.h"

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
	};

	return names[end];
}

const char *frame_kind_name(enum frame_kind kind)
{
	static const char *const names[FRAME_KIND_COUNT] = {
		[FRAME_KIND_NATIVE] = "native",
		[FRAME_KIND_KERNEL] = "kernel",
		[FRAME_KIND_SIGNAL] = "signal",
	};

	return names[kind];
}

const char *symbol_source_name(enum symbol_source source)
{
	static const char *const names[SYMBOL_SOURCE_COUNT] = {
		[SYMBOL_SYMTAB] = "symtab",   [SYMBOL_DYNSYM] = "dynsym",     [SYMBOL_MINIDEBUG] = "gnu_debugdata",
		[SYMBOL_PLT] = "plt",         [SYMBOL_DWARF] = "dwarf",       [SYMBOL_GO] = "gopclntab",
		[SYMBOL_GDB_JIT] = "gdb_jit", [SYMBOL_JITDUMP] = "jitdump",   [SYMBOL_PERF_MAP] = "perf_map",
		[SYMBOL_KERNEL] = "kernel",   [SYMBOL_KALLSYMS] = "kallsyms",
	};

	return names[source];
}
