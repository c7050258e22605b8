/* SPDX-License-Identifier: MIT */
#include "wait/library_frames.h"

#include <string.h>

enum { MAX_JAVA = 6 }; /* methods between Thread.join() and the one that waits, and that */

/* Functions of Python's library by file and name, without their classes, which Python tells only since 3.11. */
static const struct {
	const char *file;
	const char *function;
	enum wait_kind kind;
} functions[] = {
	{"threading.py", "wait", WAIT_PYTHON_CONDITION}, /* or what calls it: see next_kind() */
	{"threading.py", "wait_for", WAIT_PYTHON_CONDITION},
	{"threading.py", "_wait", WAIT_PYTHON_BARRIER},
	{"threading.py", "acquire", WAIT_PYTHON_SEMAPHORE},
	{"threading.py", "join", WAIT_PYTHON_JOIN},
	{"threading.py", "_wait_for_tstate_lock", WAIT_PYTHON_JOIN},
	{"threading.py", "_shutdown", WAIT_PYTHON_JOIN},
	{"queue.py", "get", WAIT_PYTHON_ITEM},
	{"queue.py", "put", WAIT_PYTHON_ROOM},
	{"queue.py", "join", WAIT_PYTHON_DONE},
	{"concurrent/futures/thread.py", "_worker", WAIT_PYTHON_ITEM},
	{"concurrent/futures/_base.py", "result", WAIT_PYTHON_FUTURE},
	{"concurrent/futures/_base.py", "exception", WAIT_PYTHON_FUTURE},
	{"concurrent/futures/_base.py", "as_completed", WAIT_PYTHON_FUTURE},
	{"concurrent/futures/_base.py", "wait", WAIT_PYTHON_FUTURE},
	{"multiprocessing/synchronize.py", "wait", WAIT_PYTHON_CONDITION},
	{"multiprocessing/synchronize.py", "wait_for", WAIT_PYTHON_CONDITION},
	{"multiprocessing/synchronize.py", "__enter__", WAIT_SEMAPHORE},
	{"multiprocessing/queues.py", "get", WAIT_PYTHON_ITEM},
	{"multiprocessing/queues.py", "put", WAIT_PYTHON_ROOM},
	{"multiprocessing/queues.py", "join", WAIT_PYTHON_DONE},
};

/* What modules of its library that are not written in Python wait for, in all of their functions that do; by their files. */
static const struct {
	const char *file;
	enum wait_kind kind;
} extensions[] = {
	{"_queue.", WAIT_PYTHON_ITEM}, /* SimpleQueue.get() */
	{"_multiprocessing.", WAIT_SEMAPHORE},
};

static enum wait_kind kind_of_extension(const struct frame *frame)
{
	const char *slash = frame->module && frame->module->path ? strrchr(frame->module->path, '/') : NULL;

	for (size_t i = 0; slash && i < sizeof(extensions) / sizeof(extensions[0]); i++)
		if (strncmp(slash + 1, extensions[i].file, strlen(extensions[i].file)) == 0)
			return extensions[i].kind;
	return WAIT_NOTHING;
}

/* Among the innermost frames; but who goes back from there to the interpreter has got what it waited for, and now wants the GIL. */
static enum wait_kind find_extension(const struct stack *stack, size_t n)
{
	enum wait_kind kind = WAIT_NOTHING;

	for (size_t i = 0; kind == WAIT_NOTHING && i < n; i++) {
		const char *symbol = stack->data[i].symbol;

		if (symbol && (strncmp(symbol, "PyEval_", 7) == 0 || strncmp(symbol, "take_gil", 8) == 0))
			break;
		kind = kind_of_extension(&stack->data[i]);
	}
	return kind;
}

static bool ends_with(const char *path, const char *end)
{
	const size_t len = strlen(path), tail = strlen(end);

	return len > tail && path[len - tail - 1] == '/' && strcmp(path + len - tail, end) == 0;
}

static enum wait_kind kind_of(const struct frame *frame)
{
	const char *dot = strrchr(frame->symbol, '.');

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(dot ? dot + 1 : frame->symbol, functions[i].function) == 0 && ends_with(frame->file, functions[i].file))
			return functions[i].kind;
	return WAIT_NOTHING;
}

/* Further out, an object that consists of a condition waits for that; a barrier does so by another function of its own. */
static enum wait_kind next_kind(enum wait_kind inner, enum wait_kind outer, const char *symbol)
{
	if (outer == WAIT_NOTHING)
		return inner;
	if (outer != WAIT_PYTHON_CONDITION || inner == WAIT_NOTHING)
		return outer;
	if (inner == WAIT_PYTHON_CONDITION && !strstr(symbol, "wait_for"))
		return WAIT_PYTHON_EVENT;
	return inner;
}

enum wait_kind library_wait_python(const struct stack *stack)
{
	enum wait_kind kind = WAIT_NOTHING, extension = WAIT_NOTHING;
	size_t inner = 0; /* frames of the interpreter and of extensions */

	for (size_t i = 0; stack && i < stack->len; i++) {
		const struct frame *frame = &stack->data[i];
		enum wait_kind found;

		if (frame->kind != FRAME_KIND_PYTHON)
			continue;
		if (!inner) {
			inner = i;
			extension = find_extension(stack, inner);
		}
		found = frame->symbol && frame->file ? kind_of(frame) : WAIT_NOTHING;
		if (found == WAIT_NOTHING)
			break;
		kind = next_kind(kind, found, frame->symbol);
	}
	return kind ? kind : extension;
}

/* The innermost method, or that which called it so many calls ago. NULL: there is none. */
static const char *java_method(const struct stack *stack, size_t out)
{
	for (size_t i = 0; stack && i < stack->len; i++)
		if (stack->data[i].kind == FRAME_KIND_JAVA && out-- == 0)
			return stack->data[i].symbol;
	return NULL;
}

static bool is_method(const struct stack *stack, size_t out, const char *name)
{
	const char *method = java_method(stack, out);

	return method && strcmp(method, name) == 0;
}

bool library_is_parked(const struct stack *stack)
{
	return is_method(stack, 0, "jdk.internal.misc.Unsafe.park") || is_method(stack, 0, "sun.misc.Unsafe.park");
}

bool library_is_join(const struct stack *stack)
{
	for (size_t out = 1; out < MAX_JAVA && java_method(stack, out); out++) {
		if (is_method(stack, out, "java.lang.Thread.join"))
			return true;
		if (strncmp(java_method(stack, out), "java.lang.Object.wait", 21) != 0)
			return false;
	}
	return false;
}

enum wait_kind library_wait_java(const struct stack *stack)
{
	if (library_is_parked(stack))
		return WAIT_JAVA_PARK;
	if (java_method(stack, 0) && strncmp(java_method(stack, 0), "java.lang.Thread.sleep", strlen("java.lang.Thread.sleep")) == 0)
		return WAIT_TIME; /* or sleep0, sleepNanos0 */
	if (is_method(stack, 0, "java.lang.Object.wait") || is_method(stack, 0, "java.lang.Object.wait0"))
		return library_is_join(stack) ? WAIT_JAVA_JOIN : WAIT_NOTIFICATION;
	return WAIT_NOTHING;
}
