/* SPDX-License-Identifier: MIT */
#include "offcpu/runtime_waits.h"

#include <string.h>

#include "offcpu/name_kinds.h"

struct library_function {
	const char *file; /* of Python, the end of its path; NULL: of Java, where names are whole */
	const char *name; /* with '*' at its end: only the beginning */
	enum frame_wait wait;
};

/* The first frame from the inside that is here decides; of Java's java.util.concurrent see find_java() too. */
static const struct library_function java[] = {
	{.name = "java.lang.Thread.sleep*", .wait = RUNTIME_WAIT_SLEEP},
	{.name = "java.lang.Object.wait*", .wait = RUNTIME_WAIT_CONDITION},
	{.name = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.*",
	 .wait = RUNTIME_WAIT_CONDITION},
	{.name = "java.util.concurrent.locks.AbstractQueuedLongSynchronizer$ConditionObject.*",
	 .wait = RUNTIME_WAIT_CONDITION},
	{.name = "java.util.concurrent.locks.ReentrantLock*", .wait = RUNTIME_WAIT_LOCK},
	{.name = "java.util.concurrent.locks.ReentrantReadWriteLock*", .wait = RUNTIME_WAIT_LOCK},
	{.name = "java.util.concurrent.locks.StampedLock*", .wait = RUNTIME_WAIT_LOCK},
	{.name = "java.util.concurrent.Semaphore.*", .wait = RUNTIME_WAIT_SEMAPHORE},
	{.name = "java.util.concurrent.CountDownLatch.*", .wait = RUNTIME_WAIT_OTHERS},
	{.name = "java.util.concurrent.FutureTask.*", .wait = RUNTIME_WAIT_OTHERS},
	{.name = "java.util.concurrent.CompletableFuture*", .wait = RUNTIME_WAIT_OTHERS},
	{.name = "java.util.concurrent.Phaser*", .wait = RUNTIME_WAIT_OTHERS},
	{0},
};

/* All functions named so in this file: before 3.11 code does not know its class. */
static const struct library_function python[] = {
	{"/threading.py", "wait", RUNTIME_WAIT_CONDITION},
	{"/threading.py", "join", RUNTIME_WAIT_OTHERS},
	{"/threading.py", "_wait_for_tstate_lock", RUNTIME_WAIT_OTHERS},
	{"/threading.py", "_shutdown", RUNTIME_WAIT_OTHERS},
	{"/concurrent/futures/thread.py", "_worker", RUNTIME_WAIT_CONDITION},
	{0},
};

/* What waits with a condition and is more than that: its frames are around those of the wait. */
static const struct library_function around[] = {
	{.name = "java.lang.Thread.join", .wait = RUNTIME_WAIT_OTHERS},
	{.name = "java.util.concurrent.CyclicBarrier.*", .wait = RUNTIME_WAIT_OTHERS},
	{.name = "java.util.concurrent.LinkedBlockingQueue.put", .wait = RUNTIME_WAIT_OTHERS},
	{.name = "java.util.concurrent.ArrayBlockingQueue.put", .wait = RUNTIME_WAIT_OTHERS},
	{"/threading.py", "acquire", RUNTIME_WAIT_SEMAPHORE},
	{"/threading.py", "_wait", RUNTIME_WAIT_OTHERS}, /* of a barrier */
	{"/queue.py", "put", RUNTIME_WAIT_OTHERS},
	{"/concurrent/futures/_base.py", "result", RUNTIME_WAIT_OTHERS},
	{0},
};

/* By which Java parks a thread; what for is told by who calls them. */
static const char *const java_parks[] = {
	"jdk.internal.misc.Unsafe.park",
	"sun.misc.Unsafe.park",
	"java.util.concurrent.locks.LockSupport.park*",
	"java.util.concurrent.locks.AbstractQueued*",
	"java.util.concurrent.ForkJoinPool.managedBlock",
	"java.util.concurrent.ForkJoinPool.unmanagedBlock",
	NULL,
};

static bool starts_with(const char *s, const char *start)
{
	return strncmp(s, start, strlen(start)) == 0;
}

static bool is_name(const char *symbol, const char *name)
{
	const size_t len = strcspn(name, "*");

	return strncmp(symbol, name, len) == 0 && (name[len] || !symbol[len]);
}

static bool ends_with(const char *s, const char *end)
{
	const size_t len = strlen(s), n = strlen(end);

	return len >= n && strcmp(s + len - n, end) == 0;
}

/* "wait" of "Condition.wait". */
static const char *last_part(const char *symbol)
{
	const char *dot = strrchr(symbol, '.');

	return dot ? dot + 1 : symbol;
}

static bool is_function(const struct frame *frame, const struct library_function *f)
{
	if (!f->file)
		return frame->kind == FRAME_KIND_JAVA && is_name(frame->symbol, f->name);
	return frame->kind == FRAME_KIND_PYTHON && frame->file && ends_with(frame->file, f->file) &&
	       is_name(last_part(frame->symbol), f->name);
}

static enum frame_wait find_function(const struct frame *frame, const struct library_function *table)
{
	for (; frame->symbol && table->name; table++)
		if (is_function(frame, table))
			return table->wait;
	return RUNTIME_WAIT_UNKNOWN;
}

static bool is_park(const struct frame *frame)
{
	for (const char *const *name = java_parks; frame->symbol && *name; name++)
		if (frame->kind == FRAME_KIND_JAVA && is_name(frame->symbol, *name))
			return true;
	return false;
}

static bool is_python_file(const struct module_info *module)
{
	const char *name = module && module->path ? strrchr(module->path, '/') : NULL;

	return name && (starts_with(name, "/python") || starts_with(name, "/libpython"));
}

/*
 * Python waits with condition variables only for its global lock, and has a function for that of which few builds keep
 * the name. Extension modules are files of their own.
 */
static bool is_gil(const struct stack *user, size_t i)
{
	const char *symbol = user->data[i].symbol;

	return symbol && i + 1 < user->len && user->data[i + 1].kind == FRAME_KIND_NATIVE &&
	       is_python_file(user->data[i + 1].module) && offcpu_name_kinds(symbol) & NAME_CONDITION;
}

/* How it waits for anything else; since 3.13 mostly by the second, which compilers may inline: then the third is left of it. */
static bool is_python_wait(const char *symbol)
{
	return symbol && (starts_with(symbol, "PyThread_acquire_lock_timed") || starts_with(symbol, "_PyParkingLot_Park") ||
			  starts_with(symbol, "_PySemaphore_Wait"));
}

/* Its queues wait for a lock that is not really one: adding to the queue releases it. */
static bool is_python_queue(const struct stack *user, size_t i)
{
	const struct frame *caller = i + 1 < user->len ? &user->data[i + 1] : NULL;
	const char *file;

	if (!caller || !is_python_wait(user->data[i].symbol))
		return false;
	if (caller->symbol)
		return starts_with(caller->symbol, "_queue_SimpleQueue_get");
	file = caller->module && caller->module->path ? strrchr(caller->module->path, '/') : NULL;
	return file && starts_with(file, "/_queue.");
}

/* What the interpreter itself waits for so is a lock, or has a name that says what else: PyEvent_WaitTimed. */
static bool is_python_lock(const struct stack *user, size_t end)
{
	for (size_t i = 0; i + 1 < end; i++)
		if (is_python_wait(user->data[i].symbol) && !is_python_wait(user->data[i + 1].symbol))
			return !user->data[i + 1].symbol && is_python_file(user->data[i + 1].module);
	return false;
}

static bool is_program(const struct frame *frame)
{
	return frame->kind == FRAME_KIND_JAVA || frame->kind == FRAME_KIND_PYTHON || frame->kind == FRAME_KIND_JS;
}

/* Native frames up to `*end`, the first one of the language. */
static enum frame_wait find_native(const struct stack *user, size_t *end)
{
	for (*end = 0; *end < user->len && !is_program(&user->data[*end]); ++*end) {
		const char *symbol = user->data[*end].symbol;

		if (is_gil(user, *end) || (symbol && offcpu_is_runtime_lock(symbol)))
			return RUNTIME_WAIT_LOCK;
		if (is_python_queue(user, *end)) {
			++*end;
			return RUNTIME_WAIT_CONDITION;
		}
	}
	return RUNTIME_WAIT_UNKNOWN;
}

/* A thread that is parked waits for something of java.util.concurrent, or for what the program has made of that. */
static enum frame_wait find_java(const struct stack *user, size_t *i)
{
	const size_t begin = *i;

	for (; *i < user->len; ++*i) {
		const struct frame *frame = &user->data[*i];
		enum frame_wait wait = find_function(frame, java);

		if (wait != RUNTIME_WAIT_UNKNOWN) {
			++*i;
			return wait;
		}
		if (is_park(frame))
			continue;
		if (*i == begin)
			return RUNTIME_WAIT_UNKNOWN;
		return offcpu_frame_kinds(frame) & NAME_LOCK ? RUNTIME_WAIT_LOCK : RUNTIME_WAIT_CONDITION;
	}
	return RUNTIME_WAIT_UNKNOWN;
}

/*
 * A method that is not native calls the virtual machine, which waits with a condition: for a monitor, or until something of its own is done.
 * JDK 8 as Debian builds it has no names that say so.
 */
static bool is_java_monitor(const struct stack *user, size_t end)
{
	const struct frame *method = &user->data[end], *caller = end ? method - 1 : NULL;
	const char *file = caller && caller->module && caller->module->path ? strrchr(caller->module->path, '/') : NULL;

	if (!file || !starts_with(file, "/libjvm.") || caller->symbol || !method->tier || strcmp(method->tier, "native") == 0)
		return false;
	for (size_t i = 0; i < end; i++)
		if (user->data[i].symbol && offcpu_name_kinds(user->data[i].symbol) & NAME_CONDITION)
			return true;
	return false;
}

static enum frame_wait find_python(const struct stack *user, size_t *i)
{
	enum frame_wait wait = find_function(&user->data[*i], python);

	if (wait == RUNTIME_WAIT_UNKNOWN)
		return is_python_lock(user, *i) ? RUNTIME_WAIT_LOCK : RUNTIME_WAIT_UNKNOWN;
	++*i;
	return wait;
}

/* A condition may be part of something else. */
static enum frame_wait find_around(const struct stack *user, size_t *i)
{
	enum { CALLERS = 4 };

	for (size_t k = *i; k < user->len && k < *i + CALLERS && is_program(&user->data[k]); k++) {
		enum frame_wait wait = find_function(&user->data[k], around);

		if (wait != RUNTIME_WAIT_UNKNOWN) {
			*i = k + 1;
			return wait;
		}
	}
	return RUNTIME_WAIT_CONDITION;
}

enum frame_wait offcpu_runtime_wait(const struct stack *user, size_t *frames)
{
	enum frame_wait wait;
	size_t i;

	*frames = 0;
	if (!user)
		return RUNTIME_WAIT_UNKNOWN;
	wait = find_native(user, &i);
	if (wait == RUNTIME_WAIT_UNKNOWN && i < user->len && user->data[i].kind == FRAME_KIND_JAVA)
		wait = is_java_monitor(user, i) ? RUNTIME_WAIT_LOCK : find_java(user, &i);
	else if (wait == RUNTIME_WAIT_UNKNOWN && i < user->len)
		wait = find_python(user, &i);
	if (wait == RUNTIME_WAIT_CONDITION)
		wait = find_around(user, &i);
	*frames = wait == RUNTIME_WAIT_UNKNOWN ? 0 : i;
	return wait;
}
