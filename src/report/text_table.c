/* SPDX-License-Identifier: MIT */
#include "report/text_table.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/shorten.h"

/* The C library wraps system calls and starts threads: its frames say little of what a thread is for. */
static bool is_c_library(const struct module_info *module)
{
	static const char *const starts[] = {
		"libc.so", "libc-", "libc.musl-", "libpthread.so", "libpthread-", "ld-linux", "ld-musl-", "[vdso]",
	};
	const char *name = path_tail(module->path, 1);

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

static bool is_program(enum frame_kind kind)
{
	return kind == FRAME_KIND_PYTHON || kind == FRAME_KIND_JAVA || kind == FRAME_KIND_JS;
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* What comes with the language: as with the C library, many a thread waits there. */
static bool is_library(const struct frame *frame)
{
	static const char *const packages[] = {"java.", "javax.", "jdk.", "sun.", "com.sun."};
	const char *file = frame->file ? frame->file : "";

	if (frame->kind == FRAME_KIND_JS)
		return starts_with(file, "node:") || !*file;
	if (frame->kind == FRAME_KIND_PYTHON)
		return starts_with(file, "<frozen ") || (strstr(file, "/lib/python3") && !strstr(file, "-packages/"));
	for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++)
		if (starts_with(frame->symbol, packages[i]))
			return true;
	return false;
}

/* Where a library's threads wait, whatever for: who calls these is the better answer. */
static bool is_wait(const struct frame *frame)
{
	static const char *const waits[] = {
		"jdk.internal.misc.Unsafe.park", "sun.misc.Unsafe.park", "java.util.concurrent.locks.", "java.lang.Object.wait",
		"java.lang.Thread.sleep",
	};

	if (frame->kind == FRAME_KIND_PYTHON)
		return frame->file && strstr(frame->file, "/selectors.py");
	for (size_t i = 0; frame->kind == FRAME_KIND_JAVA && i < sizeof(waits) / sizeof(waits[0]); i++)
		if (starts_with(frame->symbol, waits[i]))
			return true;
	return false;
}

/* All threads begin there. */
static bool is_start(const struct frame *frame)
{
	return starts_with(frame->symbol, frame->kind == FRAME_KIND_JAVA ? "java.lang.Thread.run" : "Thread.");
}

const struct frame *text_table_program(const struct stack *stack)
{
	const struct frame *library = NULL;

	for (size_t i = 0; stack && i < stack->len; i++) {
		const struct frame *frame = &stack->data[i];

		if (!frame->symbol || !is_program(frame->kind))
			continue;
		if (!is_library(frame))
			return frame;
		if (!library || (is_wait(library) && !is_wait(frame) && !is_start(frame)))
			library = frame;
	}
	return library;
}

/* Of "void std::this_thread::sleep_for<long>(long)" what is behind the type that it returns. */
static const char *without_type(const char *symbol)
{
	const char *name = symbol;
	int depth = 0;

	for (const char *p = symbol; *p; p++) {
		if (!depth && *p == '(' && p > name)
			break; /* the parameters */
		depth += *p == '<' || *p == '(';
		depth -= *p == '>' || *p == ')';
		if (!depth && *p == ' ')
			name = p + 1;
	}
	return name;
}

/* "/usr/include/c++/12/mutex", "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h" */
static bool is_cxx_header(const char *file)
{
	const char *include = file ? strstr(file, "/include/") : NULL;

	return include && strstr(include, "/c++/");
}

/* What comes with C++, Rust and Go, for most of which there is no file of its own. */
static bool is_language(const struct frame *frame)
{
	static const char *const starts[] = {
		"std::", "core::", "__gnu_cxx::", "__gthread_", "__cxa_guard_", "runtime.", "runtime/", "internal/runtime/", "syscall.",
	};

	const char *symbol = without_type(frame->symbol);

	/* what was inlined has a name without namespaces */
	if (is_cxx_header(frame->file) || (frame->file && starts_with(frame->file, "/rustc/")))
		return true;
	symbol += *symbol == '<'; /* "<std::sync::mpsc::Receiver<T>>::recv" */
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (starts_with(symbol, starts[i]))
			return true;
	return false;
}

/* Of the C library's functions that wait, or that these call. */
static bool is_c_wait(const char *symbol)
{
	static const char *const starts[] = {
		"pthread_", "futex", "lll_", "do_futex_wait", "sem_", "new_sem_", "thrd_", "mtx_", "cnd_", "timedwait",
	};
	static const char *const names[] = {
		"syscall", "clock_nanosleep", "nanosleep", "usleep", "sleep", "pause", "wait", "wait4", "waitpid", "waitid", "read", "write",
		"readv", "writev", "recv", "recvfrom", "recvmsg", "send", "sendto", "sendmsg", "accept", "accept4", "connect", "poll", "ppoll",
		"select", "pselect", "epoll_wait", "epoll_pwait", "open", "openat", "flock", "fcntl", "flockfile", "lockfile", "sigwait",
		"sigwaitinfo", "sigtimedwait", "sigsuspend",
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (starts_with(name_in_library(symbol), starts[i]))
			return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (name_is_library_function(symbol, names[i]))
			return true;
	return name_is_library_plumbing(symbol);
}

/* How many frames are of a C library that the program has linked in: only names tell, and only of those that wait. */
static size_t count_linked_in(const struct stack *user)
{
	const struct module_info *own = user && user->len ? user->data[0].module : NULL;
	size_t n = 0;

	while (own && !is_c_library(own) && n < user->len && user->data[n].module == own && user->data[n].symbol && is_c_wait(user->data[n].symbol))
		n++;
	return n;
}

/* Where all of Go's threads are that wait: who calls these is the better answer. */
static bool is_go_stub(const char *symbol)
{
	static const char *const starts[] = {
		"runtime.futex",  "runtime.note",      "runtime.mPark",     "runtime.epollwait",
		"runtime.usleep", "runtime/internal/", "internal/runtime/", "syscall.",
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (starts_with(symbol, starts[i]))
			return true;
	return false;
}

/* The innermost frame that says what a thread is for; *language: the best of what comes with its language, or NULL. */
static const struct frame *find_native(const struct stack *user, const struct frame **language,
				       const struct frame **nameless)
{
	for (size_t i = count_linked_in(user); user && i < user->len; i++) {
		const struct frame *frame = &user->data[i];

		if (frame->kind == FRAME_KIND_SIGNAL || (frame->module && is_c_library(frame->module)))
			continue;
		if (!frame->symbol)
			*nameless = *nameless ? *nameless : frame;
		else if (strcmp(frame->symbol, "_start") == 0)
			continue;
		else if (!is_language(frame))
			return frame;
		else if (!*language || is_go_stub((*language)->symbol))
			*language = frame;
	}
	return NULL;
}

const struct frame *text_table_frame(const struct trace_thread *thread)
{
	const struct stack *user = thread->user, *kernel = thread->kernel;
	const struct frame *language = NULL, *nameless = NULL, *program = text_table_program(user);

	if (!program) /* else the rest is what executes it */
		program = find_native(user, &language, &nameless);
	if (program || language || nameless)
		return program ? program : language ? language : nameless;
	if (user && user->len)
		return &user->data[0];
	return kernel && kernel->len ? &kernel->data[0] : NULL;
}

/* What a group has of time; -1: not known. */
struct times {
	int64_t off_cpu_ns; /* the longest */
	int64_t cpu_ns;     /* of all */
};

static struct times sum_times(const struct trace_thread *const *members, size_t count)
{
	struct times times = {-1, -1};

	for (size_t i = 0; i < count; i++) {
		const struct snap_thread *thread = members[i]->thread;

		if (thread->off_cpu_ns > times.off_cpu_ns)
			times.off_cpu_ns = thread->off_cpu_ns;
		if (thread->cpu_ns >= 0)
			times.cpu_ns = (times.cpu_ns < 0 ? 0 : times.cpu_ns) + thread->cpu_ns;
	}
	return times;
}

enum { COUNT_WIDTH = 7, TIME_WIDTH = 11, LEAST_WHERE = 16 };

/* How wide the columns are that have to give way on a narrow terminal, and what is left for the last one. */
struct layout {
	bool narrow; /* only the letter of the state */
	int state;
	int who;
	size_t where;
};

static struct layout find_layout(unsigned width)
{
	enum { NARROW = 100 };
	bool narrow = width && width < NARROW;
	struct layout layout = {.narrow = narrow, .state = narrow ? 5 : 17, .who = narrow ? 18 : 23, .where = SIZE_MAX};
	size_t taken = COUNT_WIDTH + 2 + (size_t)layout.state + 2 * TIME_WIDTH + 2 + (size_t)layout.who + 2;

	if (width)
		layout.where = width > taken + LEAST_WHERE ? width - taken : LEAST_WHERE;
	return layout;
}

/* In a column of numbers, right-justified by characters and not by bytes. */
static void put_time(FILE *out, int64_t ns)
{
	char text[DURATION_LEN] = "";

	if (ns >= 0)
		format_duration((uint64_t)ns, text);
	fprintf(out, "%*s%s", TIME_WIDTH - (int)text_columns(text), "", text);
}

/* "4715 hasher", "worker", or "worker …" when there are several names; for free(). */
static char *format_who(const struct trace_thread *const *members, size_t count)
{
	const char *name = trace_thread_name(members[0]);
	char *who = NULL;
	size_t len;
	const struct text text = {.out = open_memstream(&who, &len)};
	bool differ = false;

	if (!text.out)
		return NULL;
	for (size_t i = 1; i < count; i++)
		differ |= strcmp(trace_thread_name(members[i]), name) != 0;
	if (count == 1)
		fprintf(text.out, "%d ", members[0]->thread->tid);
	text_untrusted(&text, name);
	fputs(differ ? " …" : "", text.out);
	fclose(text.out);
	return who;
}

static void put_who(FILE *out, const struct trace_thread *const *members, size_t count, int width)
{
	_cleanup_free_ char *who = format_who(members, count), *fitting = who ? shorten_name(who, (size_t)width) : NULL;

	if (fitting)
		fprintf(out, "  %s%*s  ", fitting, width - (int)text_columns(fitting), "");
}

/* Of a function without a name, as "<anonymous>" and "<module>", " app.js:4" where there is room for it. */
static void put_place(const struct text *t, const struct frame *frame, size_t room)
{
	char line[16];

	if (frame->symbol[0] != '<' || !is_program(frame->kind) || !frame->file || !frame->line)
		return;
	snprintf(line, sizeof(line), ":%u", frame->line);
	if (text_columns(frame->symbol) + 1 + text_columns(path_tail(frame->file, 1)) + strlen(line) > room)
		return;
	fputc(' ', t->out);
	text_untrusted(t, path_tail(frame->file, 1));
	fputs(line, t->out);
}

/* Its name in at most `room` columns, or its module. */
static void put_where(const struct text *t, const struct trace_thread *thread, size_t room)
{
	const struct frame *frame = text_table_frame(thread);
	_cleanup_free_ char *name = NULL;

	if (!frame) {
		fputs("-", t->out);
	} else if (frame->symbol) {
		name = shorten_symbol(frame, room);
		text_style(t, STYLE_STRONG);
		text_untrusted(t, name ? name : frame->symbol);
		text_style(t, STYLE_PLAIN);
		put_place(t, frame, room);
	} else if (frame->module) {
		name = shorten_name(path_tail(frame->module->path, 1), room - strlen("?? in "));
		fputs("?? in ", t->out);
		text_untrusted(t, name ? name : path_tail(frame->module->path, 1));
	} else {
		fprintf(t->out, "?? 0x%" PRIx64, frame->address);
	}
}

/* " (futex)" for a thread that is blocked there, or "". */
static void format_syscall(const struct trace_thread *member, char *buf, size_t size)
{
	const struct snap_thread *thread = member->thread;
	bool blocked = thread->syscall.state == SYSCALL_IN && thread->state != 'R';
	const struct syscall_info *info =
		blocked ? arch_syscall(snapshot_arch_of(member->snap, thread), thread->syscall.nr) : NULL;

	snprintf(buf, size, "%s%s%s", info ? " (" : "", info ? info->name : "", info ? ")" : "");
}

static void put_group(const struct text *t, const struct trace_thread *const *members, size_t count,
		      const struct layout *layout)
{
	const struct snap_thread *first = members[0]->thread;
	struct times times = sum_times(members, count);
	char call[64];

	format_syscall(members[0], call, sizeof(call));
	if (layout->where < strlen(call) + LEAST_WHERE)
		call[0] = '\0';
	fprintf(t->out, "%*zu  ", COUNT_WIDTH, count);
	if (layout->narrow)
		fprintf(t->out, "%-*c", layout->state, first->state > ' ' && first->state < 0x7f ? first->state : '?');
	else
		text_state(t, first, layout->state);
	put_time(t->out, times.off_cpu_ns);
	put_time(t->out, times.cpu_ns);
	put_who(t->out, members, count, layout->who);
	put_where(t, members[0], layout->where - strlen(call));
	fprintf(t->out, "%s\n", call);
}

void text_table(const struct text *t, const struct groups *groups, unsigned width)
{
	const struct layout layout = find_layout(width);

	if (!groups->len)
		return;
	text_style(t, STYLE_DIM);
	fprintf(t->out, "\n%*s  %-*s%*s%*s  %-*s  %s\n", COUNT_WIDTH, "threads", layout.state, "state", TIME_WIDTH,
		"off-CPU", TIME_WIDTH, "CPU", layout.who, "thread", "in");
	text_style(t, STYLE_PLAIN);
	for (size_t i = 0; i < groups->len; i++)
		put_group(t, groups->members + groups->data[i].first, groups->data[i].count, &layout);
}
