/* SPDX-License-Identifier: MIT */
#include "runtime/made_code.h"

#include <string.h>

/* Files of V8, whose code always keeps frame pointers. What calls such code is in one of them. */
static const char *const keepers[] = {"node", "nodejs", "libnode.so", "chrome", "chromium", "electron", "d8", "deno"};

/* What HotSpot itself does not lead through is passed like any other. */
static bool is_java(const struct frame *frame)
{
	return frame->kind == FRAME_KIND_JAVA || frame->kind == FRAME_KIND_STUB;
}

static bool is_made(const struct frame *frame)
{
	if (is_java(frame))
		return true;
	return frame->kind == FRAME_KIND_NATIVE &&
	       (!frame->module || frame->symbol_source == SYMBOL_GDB_JIT || frame->symbol_source == SYMBOL_JITDUMP ||
		frame->symbol_source == SYMBOL_PERF_MAP);
}

/* "libnode.so" and "libnode.so.108" */
static bool is_keeper(const struct module_info *module)
{
	const char *slash = strrchr(module->path, '/'), *name = slash ? slash + 1 : module->path;

	for (size_t i = 0; i < sizeof(keepers) / sizeof(keepers[0]); i++) {
		size_t len = strlen(keepers[i]);

		if (strncmp(name, keepers[i], len) == 0 && (!name[len] || name[len] == '.'))
			return true;
	}
	return false;
}

/* By what called it, the first that is not such code: a function of JavaScript, or a file of V8. */
static bool keeps_frame_pointers(const struct stack *stack, size_t i)
{
	const struct frame *caller;

	while (i < stack->len && is_made(&stack->data[i]))
		i++;
	caller = i < stack->len ? &stack->data[i] : NULL;
	return caller && (caller->kind == FRAME_KIND_JS || (caller->module && is_keeper(caller->module)));
}

const char *made_code_doubt(const struct stack *stack)
{
	for (size_t i = 0; i + 1 < stack->len; i++) {
		const struct frame *frame = &stack->data[i], *caller = frame + 1;

		if (!is_made(frame) || caller->raw == frame->raw ||
		    !(caller->flags & (FRAME_BY_FRAME_POINTER | (is_java(frame) ? FRAME_BY_SCAN : 0))))
			continue;
		if (!keeps_frame_pointers(stack, i))
			return "frames may be missing: code made at run time was passed by frame pointer, which it may not keep";
	}
	return NULL;
}
