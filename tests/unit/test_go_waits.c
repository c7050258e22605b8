/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "wait/go_waits.h"

enum { DEEPEST = 8 };

/* What a thread waits for that is in these functions, innermost first, and in a system call. */
static struct wait wait_in(const char *const *names)
{
	static const struct snap_thread blocked = {.syscall = {.state = SYSCALL_IN, .args = {0x1000}}};
	struct frame frames[DEEPEST] = {0};
	struct stack stack = {.data = frames};
	struct trace_thread t = {.thread = &blocked, .user = &stack, .wait = {.kind = WAIT_NOTHING}};

	bool found;

	for (; *names && stack.len < DEEPEST; names++)
		frames[stack.len++].symbol = *names;
	found = go_wait_find(&t);
	assert_int_equal(found, t.wait.kind != WAIT_NOTHING);
	return t.wait;
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NOTE	   "runtime.futex.abi0", "runtime.futexsleep", "runtime.notesleep"

static void test_kinds(void **state)
{
	assert_int_equal(wait_in(NAMES(NOTE, "runtime.mPark", "runtime.stopm", "runtime.findRunnable", "runtime.schedule")).kind, WAIT_GO_WORK);
	assert_int_equal(wait_in(NAMES(NOTE, "runtime.mPark", "runtime.stopm", "runtime.gcstopm", "runtime.schedule")).kind, WAIT_GO_START);
	assert_int_equal(wait_in(NAMES(NOTE, "runtime.stopTheWorldWithSema")).kind, WAIT_GO_STOP);
	assert_int_equal(wait_in(NAMES(NOTE, "runtime.mPark", "runtime.stoplockedm", "runtime.schedule")).kind, WAIT_GO_GOROUTINE);
	assert_int_equal(wait_in(NAMES("runtime.usleep", "runtime.sysmon", "runtime.mstart1")).kind, WAIT_GO_MONITOR);
	assert_int_equal(wait_in(NAMES("runtime.futex", "runtime.futexsleep", "runtime.lock2", "runtime.sysmon")).kind, WAIT_GO_LOCK);
	assert_int_equal(wait_in(NAMES(NOTE, "runtime.templateThread")).kind, WAIT_GO_TEMPLATE);
	assert_int_equal(wait_in(NAMES(NOTE, "os/signal.signal_recv", "os/signal.loop")).kind, WAIT_GO_SIGNAL);
	assert_int_equal(wait_in(NAMES(NOTE, "runtime.somethingNew")).kind, WAIT_GO_NOTE);
}

static void test_addresses(void **state)
{
	assert_int_equal(wait_in(NAMES("runtime.futex", "runtime.futexsleep", "runtime.lock2")).address, 0x1000);
	assert_int_equal(wait_in(NAMES(NOTE, "runtime.stopm")).address, 0);
}

/* Who calls the kernel otherwise, and what only begins with such a name. */
static void test_others(void **state)
{
	assert_int_equal(wait_in(NAMES("__futex_abstimed_wait_common", "pthread_mutex_lock", "runtime.cgocall", "runtime.stopm")).kind, WAIT_NOTHING);
	assert_int_equal(wait_in(NAMES("runtime.futexes", "runtime.stopm")).kind, WAIT_NOTHING);
	assert_int_equal(wait_in(NAMES("runtime.usleep", "main.main")).kind, WAIT_NOTHING);
	assert_int_equal(wait_in(NAMES("syscall.Syscall", "runtime.sysmon")).kind, WAIT_NOTHING);
}

static void test_network(void **state)
{
	struct frame frames[] = {{.symbol = "internal/runtime/syscall.EpollWait"}, {0}, {.symbol = "runtime.netpoll"}};
	const struct stack stack = {.data = frames, .len = 3};

	assert_true(go_is_polling(&stack));
	frames[2].symbol = "runtime.netpollBreak";
	assert_false(go_is_polling(&stack));
	frames[0].symbol = "runtime.epollwait.abi0";
	assert_true(go_is_polling(&stack));
	assert_false(go_is_polling(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
