/* SPDX-License-Identifier: MIT */
#include "wait/time_left.h"

#include <linux/futex.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

enum time_form { FORM_TIMESPEC, FORM_TIMEVAL, FORM_MILLISECONDS };

/* System calls that have a limit, which argument it is, and how it is written. */
static const struct limited_call {
	const char *name;
	uint8_t arg;
	enum time_form form;
	bool sleeps_once; /* nobody wakes it in between, but for signals */
} calls[] = {
	{"nanosleep", 0, FORM_TIMESPEC, true},
	{"clock_nanosleep", 2, FORM_TIMESPEC, true},
	{"futex", 3, FORM_TIMESPEC, true},
	{"futex_wait", 4, FORM_TIMESPEC, true},
	{"futex_waitv", 3, FORM_TIMESPEC, true},
	{"rt_sigtimedwait", 2, FORM_TIMESPEC, true},
	{"semtimedop", 3, FORM_TIMESPEC, false},
	{"mq_timedreceive", 4, FORM_TIMESPEC, false},
	{"mq_timedsend", 4, FORM_TIMESPEC, false},
	{"poll", 2, FORM_MILLISECONDS, false},
	{"ppoll", 2, FORM_TIMESPEC, false},
	{"select", 4, FORM_TIMEVAL, false},
	{"_newselect", 4, FORM_TIMEVAL, false},
	{"pselect6", 4, FORM_TIMESPEC, false},
	{"epoll_wait", 3, FORM_MILLISECONDS, false},
	{"epoll_pwait", 3, FORM_MILLISECONDS, false},
	{"epoll_pwait2", 3, FORM_TIMESPEC, false},
	{"io_getevents", 4, FORM_TIMESPEC, false},
	{"io_pgetevents", 4, FORM_TIMESPEC, false},
};

static const char wide_suffix[] = "_time64"; /* of calls of 32-bit programs, whose times are those of 64-bit ones */

/* The clock of a limit; -1: one that cannot be compared; and whether it is a point of it. */
struct limit_clock {
	clockid_t id;
	bool absolute;
};

static bool is_wide(const char *name)
{
	const size_t len = strlen(name), suffix = sizeof(wide_suffix) - 1;

	return len > suffix && strcmp(name + len - suffix, wide_suffix) == 0;
}

static const struct limited_call *find_call(const char *name)
{
	const size_t len = is_wide(name) ? strlen(name) - (sizeof(wide_suffix) - 1) : strlen(name);

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].name[0] == name[0] && strncmp(calls[i].name, name, len) == 0 && !calls[i].name[len])
			return &calls[i];
	return NULL;
}

static struct limit_clock clock_of(const struct limited_call *call, const uint64_t *args)
{
	struct limit_clock clock = {.id = CLOCK_MONOTONIC};

	if (strcmp(call->name, "clock_nanosleep") == 0) {
		clock.absolute = args[1] & TIMER_ABSTIME;
		clock.id = (clockid_t)args[0];
		if (clock.id == CLOCK_REALTIME && !clock.absolute)
			clock.id = CLOCK_MONOTONIC; /* setting the clock does not matter */
	} else if (strcmp(call->name, "futex") == 0) {
		const unsigned op = (unsigned)args[1] & (unsigned)FUTEX_CMD_MASK;

		clock.absolute = op != FUTEX_WAIT;
		if (op == FUTEX_LOCK_PI || args[1] & FUTEX_CLOCK_REALTIME)
			clock.id = CLOCK_REALTIME;
	} else if (strcmp(call->name, "futex_wait") == 0 || strcmp(call->name, "futex_waitv") == 0) {
		clock.absolute = true;
		clock.id = (clockid_t)args[call->arg + 1];
	} else if (strncmp(call->name, "mq_", 3) == 0) {
		clock.absolute = true;
		clock.id = CLOCK_REALTIME;
	}
	return clock;
}

/* -1: it could not be read, or is no time. */
static int64_t read_time(struct mem *mem, uint64_t address, enum time_form form, bool narrow)
{
	const int64_t parts = form == FORM_TIMEVAL ? 1000000 : NS_PER_S;
	int64_t wide[2];
	int32_t small[2];

	if (narrow && mem_read_exact(mem, address, small, sizeof(small))) {
		wide[0] = small[0];
		wide[1] = small[1];
	} else if (narrow || !mem_read_exact(mem, address, wide, sizeof(wide))) {
		return -1;
	}
	if (wide[0] < 0 || wide[0] >= INT64_MAX / NS_PER_S || wide[1] < 0 || wide[1] >= parts)
		return -1;
	return wide[0] * NS_PER_S + wide[1] * (NS_PER_S / parts);
}

static void set_left(struct time_limit *limit, enum wait_left left, int64_t ns)
{
	limit->left = left;
	limit->left_ns = ns < 0 ? 0 : ns;
}

/* A point in time is exact; else the kernel's own timer is, or when the thread left its CPU tells when it began. */
static void find_left(const struct trace_thread *t, const struct limited_call *call, struct limit_clock clock, bool restarted, int64_t ns,
		      struct time_limit *out)
{
	const struct snap_thread *thread = t->thread;
	const int64_t now = snapshot_clock(t->snap, clock.id);

	if (clock.absolute && now > 0 && ns >= 0)
		set_left(out, LEFT_EXACT, ns - now);
	else if (clock.id == CLOCK_MONOTONIC && thread->facts.timer_ns != NO_TIMER)
		set_left(out, LEFT_EXACT, thread->facts.timer_ns);
	else if (!clock.absolute && ns >= 0 && thread->off_cpu_ns >= 0)
		set_left(out, call->sleeps_once && !restarted ? LEFT_ABOUT : LEFT_AT_MOST, ns - thread->off_cpu_ns);
	else if (!clock.absolute && ns >= 0)
		set_left(out, LEFT_AT_MOST, ns);
}

struct time_limit time_limit_of(const struct trace_thread *t, struct mem *mem)
{
	struct time_limit limit = {0};
	bool restarted;
	const struct syscall_info *info = trace_thread_call(t, &restarted);
	const struct limited_call *call = info ? find_call(info->name) : NULL;
	const uint64_t arg = call ? t->thread->syscall.args[call->arg] : 0;
	int64_t ns;

	if (!call || (call->form == FORM_MILLISECONDS ? (int32_t)arg < 0 : !arg))
		return limit;
	limit.limited = true;
	ns = call->form == FORM_MILLISECONDS ? (int64_t)(int32_t)arg * (NS_PER_S / 1000)
					     : read_time(mem, arg, call->form, snapshot_arch_of(t->snap, t->thread)->word == 4 && !is_wide(info->name));
	find_left(t, call, clock_of(call, t->thread->syscall.args), restarted, ns, &limit);
	return limit;
}
