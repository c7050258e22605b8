/* SPDX-License-Identifier: MIT */
#include "wait/go_waits.h"

#include <string.h>

enum { INNERMOST = 16 }; /* frames that are looked at: a goroutine that has switched to the thread's own stack has more of them */

static const struct go_function {
	const char *name;
	enum wait_kind kind;
} functions[] = { /* the first of these that is on the stack decides, wherever it is: some call others */
	{"runtime.lock2", WAIT_GO_LOCK},
	{"runtime.gcstopm", WAIT_GO_START},
	{"runtime.stopTheWorldWithSema", WAIT_GO_STOP},
	{"runtime.forEachP", WAIT_GO_STOP},
	{"runtime.forEachPInternal", WAIT_GO_STOP},
	{"runtime.stoplockedm", WAIT_GO_GOROUTINE},
	{"runtime.sysmon", WAIT_GO_MONITOR},
	{"runtime.templateThread", WAIT_GO_TEMPLATE},
	{"os/signal.signal_recv", WAIT_GO_SIGNAL},
	{"runtime.signal_recv", WAIT_GO_SIGNAL},
	{"runtime.stopm", WAIT_GO_WORK},
	{"runtime.findRunnable", WAIT_GO_WORK},
	{"runtime.findrunnable", WAIT_GO_WORK}, /* before 1.19 */
	{"runtime.notesleep", WAIT_GO_NOTE},
	{"runtime.notetsleep", WAIT_GO_NOTE},
	{"runtime.notetsleepg", WAIT_GO_NOTE},
	{"runtime.notetsleep_internal", WAIT_GO_NOTE},
	{"runtime.futexsleep", WAIT_GO_NOTE},
};

/* "runtime.futex" is also "runtime.futex.abi0". */
static bool is_function(const char *symbol, const char *name)
{
	const size_t len = strlen(name);

	return symbol && strncmp(symbol, name, len) == 0 && (!symbol[len] || strncmp(symbol + len, ".abi", 4) == 0);
}

static bool has_function(const struct stack *user, const char *name)
{
	for (size_t i = 0; i < user->len && i < INNERMOST; i++)
		if (is_function(user->data[i].symbol, name))
			return true;
	return false;
}

/* It was the runtime that called the kernel: no library that a goroutine has called. */
static bool is_call_of_go(const struct stack *user)
{
	static const char *const calls[] = {"runtime.futex", "runtime.usleep", NULL};

	for (const char *const *name = calls; user && user->len && *name; name++)
		if (is_function(user->data[0].symbol, *name))
			return true;
	return false;
}

bool go_wait_find(struct trace_thread *t)
{
	if (t->thread->syscall.state != SYSCALL_IN || !is_call_of_go(t->user))
		return false;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (has_function(t->user, functions[i].name)) {
			t->wait = (struct wait){.kind = functions[i].kind};
			if (t->wait.kind == WAIT_GO_LOCK || t->wait.kind == WAIT_GO_NOTE)
				t->wait.address = t->thread->syscall.args[0];
			return true;
		}
	return false;
}

/* Where only the innermost frame is known, that tells it up to Go 1.20. */
bool go_is_polling(const struct stack *user)
{
	return user && user->len && (has_function(user, "runtime.netpoll") || is_function(user->data[0].symbol, "runtime.epollwait"));
}
