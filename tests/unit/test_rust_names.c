/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "wait/rust_names.h"

enum { DEEPEST = 24 };

static enum wait_kind wait_in(const char *const *names)
{
	struct frame frames[DEEPEST] = {{.symbol = "syscall"}};
	struct stack stack = {.data = frames, .len = 1};

	for (; *names && stack.len < DEEPEST; names++)
		frames[stack.len++].symbol = *names;
	return rust_wait(&stack);
}

#define WAITS(kind, ...) assert_int_equal(wait_in((const char *const[]){__VA_ARGS__, NULL}), kind)

/* Both ways to mangle names, and where the functions were in some versions. */
static void test_names(void **state)
{
	WAITS(WAIT_MUTEX, "<std::sys::sync::mutex::futex::Mutex>::lock_contended", "main::work");
	WAITS(WAIT_MUTEX, "std::sys::unix::locks::futex_mutex::Mutex::lock_contended", "main::work");
	WAITS(WAIT_READ_LOCK, "std::sys::pal::unix::futex::futex_wait", "<std::sys::sync::rwlock::futex::RwLock>::read_contended");
	WAITS(WAIT_WRITE_LOCK, "std::sys::sync::rwlock::futex::RwLock::write_contended");
	WAITS(WAIT_CONDITION, "<std::sys::sync::condvar::futex::Condvar>::wait_optional_timeout", "main::work");
	WAITS(WAIT_ONCE, "<std::sys::sync::once::futex::Once>::call");
	WAITS(WAIT_ONCE, "std::sync::once::Once::call_inner");
	WAITS(WAIT_PARKED, "std::thread::functions::park");
	WAITS(WAIT_PARKED, "std::thread::park_timeout");
	WAITS(WAIT_PARKED, "<std::thread::thread::Thread>::park", "std::thread::scoped::scope::<main::work::{closure#0}, ()>");
}

static void test_what_consists_of_others(void **state)
{
	WAITS(WAIT_BARRIER, "<std::sys::sync::condvar::futex::Condvar>::wait",
	      "<std::sync::nonpoison::condvar::Condvar>::wait_while::<std::sync::barrier::BarrierState, <std::sync::barrier::Barrier>::wait::{closure#0}>",
	      "<std::sync::barrier::Barrier>::wait");
	WAITS(WAIT_BARRIER, "<std::sync::barrier::Barrier>::wait");
	WAITS(WAIT_CHANNEL, "<std::thread::thread::Thread>::park", "<std::sync::mpmc::list::Channel<u64>>::recv::{closure#1}");
	WAITS(WAIT_CHANNEL_ROOM, "std::thread::park", "std::sync::mpmc::array::Channel<T>::send::{{closure}}");
	WAITS(WAIT_CHANNEL, "std::thread::park", "std::sync::mpsc::blocking::WaitToken::wait", "std::sync::mpsc::stream::Packet<T>::recv");
}

static void test_others(void **state)
{
	WAITS(WAIT_NOTHING, "main::Mutex::lock_contended");
	WAITS(WAIT_NOTHING, "std::thread::unpark");
	WAITS(WAIT_NOTHING, "std::sys::x::call::<std::sys::sync::mutex::futex::Mutex::lock_contended>"); /* an argument */
	WAITS(WAIT_NOTHING, "main::work", "<std::sys::sync::mutex::futex::Mutex>::lock_contended"); /* the program itself called the kernel */
	WAITS(WAIT_PARKED, "std::thread::park", "main::work", "std::sync::mpmc::list::Channel<T>::recv");
	WAITS(WAIT_PARKED, "std::thread::park", "std::sync::once::Once::call_once::{{closure}}", "std::sys::sync::once::futex::Once::call");
	WAITS(WAIT_NOTHING, "<<<<", "<a->b>::c>>>>", "");
	assert_int_equal(rust_wait(NULL), WAIT_NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_what_consists_of_others),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
