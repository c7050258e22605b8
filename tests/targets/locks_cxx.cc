/* SPDX-License-Identifier: MIT */
/* locks_cxx WHAT: `holder` has something of C++'s library, and sleeps; `waiter` waits for it. */
/* build: -std=c++23 */
#include "target.h"

#include <condition_variable>
#include <future>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>

static std::mutex global_mutex;
static std::recursive_mutex global_recursive;
static std::timed_mutex global_timed;
static std::shared_mutex global_shared;
static std::condition_variable global_condition;
static std::once_flag global_once;
static std::promise<int> global_promise;
static std::counting_semaphore<1> global_semaphore(0);
static std::promise<void> held;
static std::shared_future<void> is_held = held.get_future().share();
static std::thread other;

static void say_held_and_rest()
{
	held.set_value();
	target_block();
}

template <typename Mutex> static void hold(Mutex &mutex)
{
	mutex.lock();
	say_held_and_rest();
}

template <typename Mutex> static void want(Mutex &mutex)
{
	is_held.wait();
	target_arrived();
	mutex.lock();
}

struct slow {
	slow() { say_held_and_rest(); }
};

static void make_static()
{
	static slow value;
	(void)value;
}

static void want_static()
{
	is_held.wait();
	target_arrived();
	make_static();
}

static void hold_mutex() { hold(global_mutex); }
static void want_mutex() { want(global_mutex); }
static void hold_recursive() { hold(global_recursive); }
static void want_recursive() { want(global_recursive); }
static void hold_timed() { hold(global_timed); }

static void want_timed()
{
	is_held.wait();
	target_arrived();
	(void)global_timed.try_lock_for(std::chrono::hours(1));
}

static void hold_shared() { hold(global_shared); }
static void want_exclusively() { want(global_shared); }

static void want_shared()
{
	is_held.wait();
	target_arrived();
	global_shared.lock_shared();
}

static void want_condition()
{
	std::unique_lock<std::mutex> lock(global_mutex);

	target_arrived();
	global_condition.wait(lock, [] { return false; });
}

static void want_result()
{
	std::future<int> result = global_promise.get_future();

	target_arrived();
	result.wait();
}

static void want_semaphore()
{
	target_arrived();
	global_semaphore.acquire();
}

static void hold_once() { std::call_once(global_once, say_held_and_rest); }

static void want_once()
{
	is_held.wait();
	target_arrived();
	std::call_once(global_once, [] {});
}

static void want_end()
{
	other = std::thread([] { say_held_and_rest(); });
	is_held.wait();
	target_arrived();
	other.join();
}

static const struct {
	const char *what;
	void (*holder)();
	void (*waiter)();
} pairs[] = {
	{"mutex", hold_mutex, want_mutex},
	{"recursive", hold_recursive, want_recursive},
	{"timed", hold_timed, want_timed},
	{"write", hold_shared, want_exclusively},
	{"read", hold_shared, want_shared},
	{"condition", nullptr, want_condition},
	{"future", nullptr, want_result},
	{"semaphore", nullptr, want_semaphore},
	{"once", hold_once, want_once},
	{"static", make_static, want_static},
	{"join", nullptr, want_end},
};

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	target_init();
	for (const auto &pair : pairs) {
		if (strcmp(pair.what, argv[1]) != 0)
			continue;
		if (pair.holder)
			target_start("holder", pair.holder);
		target_start("waiter", pair.waiter);
	}
	target_ready();
	target_serve(nullptr);
}
