/* SPDX-License-Identifier: MIT */
#include "report/text_syscall.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "report/names.h"
#include "report/shorten.h"
#include "report/syscall_words.h"

/* A parameter of a call: the kernel's name for it, and its value. */
struct arg {
	const char *name;
	size_t len;
	uint64_t value;
};

/* What is to be shown. */
struct shown_call {
	const struct text *t;
	const struct snapshot *snap;
	const struct snap_thread *thread; /* whose stack may have what an argument points to */
	const struct arch *arch;
	const struct syscall_info *info; /* NULL: it is not known */
	const uint64_t *args;
	bool no_names; /* of parameters */
};

/*
 * The kernel's parameter names tell how a value reads best, in one base for each kind. Where they do not, the value
 * does: pointers are large, and what looks like a 32-bit int just below zero is one.
 */
enum form { FORM_GUESS, FORM_INT, FORM_SIZE, FORM_BITS, FORM_POINTER, FORM_MODE };

static bool ends_with(const struct arg *arg, const char *suffix)
{
	size_t n = strlen(suffix);

	return arg->len >= n && strncmp(arg->name + arg->len - n, suffix, n) == 0;
}

static bool is_named(const struct arg *arg, const char *name)
{
	return arg->len == strlen(name) && ends_with(arg, name);
}

static bool is_call(const struct shown_call *call, const char *name)
{
	return call->info && strcmp(call->info->name, name) == 0;
}

static enum form form_of(const struct arg *arg)
{
	static const struct {
		const char *suffix;
		enum form form;
	} rules[] = {
		{"infop", FORM_POINTER},    {"upeer_addrlen", FORM_POINTER}, /* before their endings */
		{"fd", FORM_INT},           {"fildes", FORM_INT},       {"pid", FORM_INT},
		{"timeout", FORM_INT},      {"op", FORM_BITS},          {"flags", FORM_BITS},
		{"flag", FORM_BITS},        {"prot", FORM_BITS},        {"sigmask", FORM_POINTER},
		{"mask", FORM_BITS},        {"cmd", FORM_BITS},         {"options", FORM_BITS},
		{"count", FORM_SIZE},       {"len", FORM_SIZE},         {"size", FORM_SIZE},
		{"buf", FORM_POINTER},      {"ptr", FORM_POINTER},      {"addr", FORM_POINTER},
		{"addr2", FORM_POINTER},    {"filename", FORM_POINTER}, {"path", FORM_POINTER},
		{"pathname", FORM_POINTER}, {"ufds", FORM_POINTER},     {"inp", FORM_POINTER},
		{"outp", FORM_POINTER},     {"exp", FORM_POINTER},      {"rmtp", FORM_POINTER},
		{"vec", FORM_POINTER},      {"ru", FORM_POINTER},
		{"uinfo", FORM_POINTER},    {"mode", FORM_MODE},        {"argp", FORM_POINTER},
		{"optval", FORM_POINTER},   {"msgp", FORM_POINTER},
	};

	for (size_t i = 0; arg->name && i < sizeof(rules) / sizeof(rules[0]); i++)
		if (ends_with(arg, rules[i].suffix))
			return rules[i].form;
	return FORM_GUESS;
}

/* Names that mean something else in other calls. */
static enum form form_in(const struct shown_call *call, const struct arg *arg)
{
	if (arg->name && ((is_named(arg, "addr_len") && is_call(call, "recvfrom")) ||
			  (is_named(arg, "sig") && is_call(call, "pselect6"))))
		return FORM_POINTER;
	return form_of(arg);
}

static bool is_pointer(uint64_t value)
{
	return value > UINT32_MAX && value < UINT64_C(1) << 63;
}

static bool is_small_negative(uint64_t value)
{
	int64_t wide = (int64_t)value;
	int32_t narrow = (int32_t)value;

	return (wide < 0 && wide >= -4096) || (value <= UINT32_MAX && narrow < 0 && narrow >= -4096);
}

static void put_plain(FILE *out, enum form form, uint64_t value)
{
	const uint64_t larger_than_sizes = UINT64_C(1) << 40;

	if (form == FORM_POINTER && !value)
		fputs("NULL", out);
	else if (form == FORM_POINTER || (form == FORM_BITS && value && !is_small_negative(value)))
		fprintf(out, "0x%" PRIx64, value);
	else if (form == FORM_MODE && value && !is_small_negative(value))
		fprintf(out, "0%" PRIo64, value);
	else if (is_small_negative(value) || (form == FORM_INT && !is_pointer(value)))
		fprintf(out, "%" PRId32, (int32_t)value);
	else if (form == FORM_SIZE ? value < larger_than_sizes : value <= UINT32_MAX)
		fprintf(out, "%" PRIu64, value);
	else
		fprintf(out, "0x%" PRIx64, value);
}

/* Times */

/* Of which clock a time is, and whether it is a point in it. */
struct time_kind {
	clockid_t clock;
	bool absolute;
	bool microseconds; /* in place of nanoseconds: struct timeval */
};

static int futex_op(const struct shown_call *call)
{
	return (int)call->args[1] & FUTEX_CMD_MASK;
}

static struct time_kind time_kind(const struct shown_call *call)
{
	struct time_kind kind = {.clock = CLOCK_MONOTONIC, .microseconds = is_call(call, "select")};

	if (is_call(call, "clock_nanosleep")) {
		kind.clock = (clockid_t)call->args[0];
		kind.absolute = call->args[1] & TIMER_ABSTIME;
	} else if (is_call(call, "futex")) {
		int op = futex_op(call);

		kind.absolute = op != FUTEX_WAIT;
		if (op == FUTEX_LOCK_PI || call->args[1] & FUTEX_CLOCK_REALTIME)
			kind.clock = CLOCK_REALTIME;
	}
	return kind;
}

static bool put_time(const struct shown_call *call, uint64_t address)
{
	struct time_kind kind = time_kind(call);
	struct snapshot_mem memory;
	char text[DURATION_LEN];
	int64_t value[2], ns, now = 0;

	if (call->arch->word != sizeof(int64_t)) /* a 32-bit program's is another struct */
		return false;
	snapshot_mem_init(&memory, call->snap, call->thread);
	if (!mem_read_exact(&memory.mem, address, value, sizeof(value)) || value[0] < 0 ||
	    value[0] > INT64_MAX / NS_PER_S - 1 || value[1] < 0 || value[1] >= NS_PER_S)
		return false;
	ns = value[0] * NS_PER_S + (kind.microseconds ? value[1] % 1000000 * 1000 : value[1]);
	if (kind.absolute) {
		now = snapshot_clock(call->snap, kind.clock);
		if (now <= 0)
			return false;
		ns -= now;
	}
	format_duration((uint64_t)(ns < 0 ? -ns : ns), text);
	fprintf(call->t->out, "%s%s", text, !kind.absolute ? "" : ns < 0 ? " ago" : " from now");
	return true;
}

/* A pointer to a time to wait for. */
static bool is_time_pointer(const struct shown_call *call, const struct arg *arg)
{
	return is_named(arg, "rqtp") || is_named(arg, "tsp") || is_named(arg, "uts") || is_named(arg, "tvp") ||
	       (is_named(arg, "utime") && is_call(call, "futex")) ||
	       (is_named(arg, "timeout") &&
		(is_call(call, "epoll_pwait2") || is_call(call, "recvmmsg") || is_call(call, "semtimedop") ||
		 is_call(call, "io_getevents") || is_call(call, "io_pgetevents")));
}

static bool is_milliseconds(const struct shown_call *call, const struct arg *arg)
{
	return is_named(arg, "timeout_msecs") || (is_named(arg, "timeout") && !is_pointer(arg->value) &&
						  (is_call(call, "epoll_wait") || is_call(call, "epoll_pwait")));
}

static bool put_timeout(const struct shown_call *call, const struct arg *arg)
{
	int32_t ms = (int32_t)arg->value;
	char text[DURATION_LEN];

	if (is_milliseconds(call, arg)) {
		if (ms < 0)
			fputs("none", call->t->out);
		else
			fputs(ms ? format_duration((uint64_t)ms * (NS_PER_S / 1000), text) : "0", call->t->out);
		return true;
	}
	if (!is_time_pointer(call, arg))
		return false;
	if (!arg->value)
		fputs("none", call->t->out);
	return !arg->value || put_time(call, arg->value);
}

/* Names */

/* True when the value has been written as what it means. */
static bool put_meaning(const struct shown_call *call, const struct arg *arg)
{
	enum { CWD = -100 }; /* AT_FDCWD */
	FILE *out = call->t->out;

	if (!arg->name)
		return false;
	if (ends_with(arg, "fd") && (int32_t)arg->value == CWD) {
		fputs("AT_FDCWD", out);
		return true;
	}
	if (call->info && syscall_word(out, call->info->name, arg->name, arg->len, arg->value))
		return true;
	return put_timeout(call, arg);
}

/* A futex that is waited for has no second one, and mostly no bits to choose by. */
static bool is_unused(const struct shown_call *call, const struct arg *arg)
{
	int op;

	if (!is_call(call, "futex") || !arg->name)
		return false;
	op = futex_op(call);
	if (is_named(arg, "uaddr2"))
		return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET || op == FUTEX_LOCK_PI || op == FUTEX_WAKE;
	if (is_named(arg, "val3"))
		return op == FUTEX_WAIT || op == FUTEX_LOCK_PI || op == FUTEX_WAKE ||
		       (op == FUTEX_WAIT_BITSET && (uint32_t)arg->value == FUTEX_BITSET_MATCH_ANY);
	return false;
}

static void put_args(const struct shown_call *call, unsigned args_differ)
{
	const char *name = call->info ? call->info->args : NULL;
	const char *separator = "";
	FILE *out = call->t->out;
	bool no_mask = false;

	for (unsigned i = 0; i < syscall_nargs(call->info); i++) {
		struct arg arg = {.name = name, .len = name ? strcspn(name, ",") : 0, .value = call->args[i]};

		if (name)
			name += name[arg.len] ? arg.len + 1 : arg.len;
		if (is_unused(call, &arg) || (no_mask && is_named(&arg, "sigsetsize")))
			continue;
		no_mask = arg.name && is_named(&arg, "sigmask") && !arg.value; /* then nobody reads its size */
		fputs(separator, out);
		separator = ", ";
		if (arg.name && !call->no_names)
			fprintf(out, "%.*s=", (int)arg.len, arg.name);
		if (args_differ >> i & 1)
			fputs("…", out);
		else if (!put_meaning(call, &arg))
			put_plain(out, form_in(call, &arg), arg.value);
	}
}

static struct shown_call call_of(const struct text *t, const struct trace_thread *thread, bool *restarted)
{
	struct shown_call call = {
		.t = t,
		.snap = thread->snap,
		.thread = thread->thread,
		.arch = snapshot_arch_of(thread->snap, thread->thread),
		.args = thread->thread->syscall.args,
	};

	call.info = trace_thread_call(thread, restarted);
	return call;
}

/* Threads of a group */

/* Pointers of two processes are not the same when they are equal: they lead to what each of them has there. */
static bool is_same_value(const struct trace_thread *a, const struct trace_thread *b, unsigned i)
{
	enum { LEAST_POINTER = 0x10000 };
	uint64_t value = a->thread->syscall.args[i];

	return b->thread->syscall.args[i] == value && (a->snap == b->snap || value < LEAST_POINTER);
}

/* What argument i means, for free(); NULL: only its value is known. */
static char *format_meaning(const struct trace_thread *thread, unsigned i)
{
	char *meaning = NULL;
	size_t len;
	const struct text text = {.out = open_memstream(&meaning, &len)};
	bool restarted, is_known = false;

	if (text.out) {
		const struct shown_call call = call_of(&text, thread, &restarted);
		struct arg arg = {.name = call.info ? call.info->args : NULL, .value = call.args[i]};

		for (unsigned n = 0; arg.name && n < i; n++)
			arg.name = strchr(arg.name, ',') ? strchr(arg.name, ',') + 1 : NULL;
		arg.len = arg.name ? strcspn(arg.name, ",") : 0;
		is_known = put_meaning(&call, &arg);
		fclose(text.out);
	}
	if (!is_known) {
		free(meaning);
		meaning = NULL;
	}
	return meaning;
}

/* Two pointers are as good as one when they lead to the same time. */
static bool is_same_arg(const struct trace_thread *const *members, size_t count, unsigned i)
{
	_cleanup_free_ char *first = NULL;

	for (size_t k = 1; k < count; k++) {
		_cleanup_free_ char *other = NULL;

		if (is_same_value(members[0], members[k], i))
			continue;
		first = first ? first : format_meaning(members[0], i);
		other = first ? format_meaning(members[k], i) : NULL;
		if (!other || strcmp(first, other) != 0)
			return false;
	}
	return true;
}

/* Bit i is set when argument i is not the same in all of them. */
static unsigned differing_args(const struct trace_thread *const *members, size_t count)
{
	unsigned differ = 0;

	for (unsigned i = 0; i < 6; i++)
		differ |= (unsigned)!is_same_arg(members, count, i) << i;
	return differ;
}

static void put_call(const struct text *t, const struct trace_thread *thread, unsigned args_differ, bool no_names)
{
	bool restarted;
	struct shown_call call = call_of(t, thread, &restarted);

	call.no_names = no_names;
	if (call.info)
		fprintf(t->out, "%s(", call.info->name);
	else
		fprintf(t->out, "syscall %" PRId64 "(", thread->thread->syscall.nr);
	put_args(&call, args_differ);
	fputs(restarted ? "), restarted" : ")", t->out);
}

static size_t count_columns(const struct trace_thread *thread, unsigned args_differ)
{
	_cleanup_free_ char *line = NULL;
	size_t len;
	const struct text plain = {.out = open_memstream(&line, &len)};

	if (!plain.out)
		return 0;
	put_call(&plain, thread, args_differ, false);
	fclose(plain.out);
	return line ? text_columns(line) : 0;
}

void text_syscall(const struct text *t, const struct trace_thread *const *members, size_t count, unsigned room)
{
	unsigned differ = differing_args(members, count);

	put_call(t, members[0], differ, room && count_columns(members[0], differ) > room);
}
