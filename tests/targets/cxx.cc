/* SPDX-License-Identifier: MIT */
/*
 * cxx: C++ threads. "inlines" blocks below inlined calls, "templates" in a member function of a class template,
 * "catch" in an exception handler, "cleanup" in a destructor that an exception runs, "terminate" in the terminate
 * handler, below a function whose last instruction is the call that throws.
 */
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "frame.h"

#define INLINED __attribute__((always_inline)) inline

namespace cxx
{

thread_local std::atomic<int> *self;

FRAME void block()
{
	*self = static_cast<int>(syscall(SYS_gettid));
	for (;;)
		pause();
}

INLINED void third_inlined()
{
	block();
}

INLINED void second_inlined()
{
	third_inlined();
}

INLINED void first_inlined()
{
	second_inlined();
}

FRAME void inlines()
{
	first_inlined();
}

template <typename T, int N> struct Box {
	T value;

	FRAME void hold(const std::vector<T> &more)
	{
		if (more.size() < N)
			block();
	}
};

FRAME void templates()
{
	Box<std::string, 3> box{"value"};

	box.hold({"more"});
}

FRAME void throw_error()
{
	throw std::runtime_error("thrown");
}

FRAME void catches()
{
	try {
		throw_error();
	} catch (const std::exception &) {
		block();
	}
}

/* As if functions that do the same had been merged. */
void a() __attribute__((alias("_ZN3cxx9templatesEv")));
void z_which_has_a_longer_name() __attribute__((alias("_ZN3cxx9templatesEv")));

struct Guard {
	FRAME ~Guard()
	{
		block();
	}
};

FRAME void guarded()
{
	Guard guard;

	throw_error();
}

FRAME void cleanup()
{
	try {
		guarded();
	} catch (const std::exception &) {
	}
}

FRAME void terminates() noexcept
{
	throw_error();
}

FRAME void at_terminate()
{
	block();
}

} // namespace cxx

int main()
{
	struct {
		const char *name;
		void (*run)();
		std::atomic<int> tid;
	} threads[] = {{"inlines", cxx::inlines, {0}},
		       {"templates", cxx::templates, {0}},
		       {"catch", cxx::catches, {0}},
		       {"cleanup", cxx::cleanup, {0}},
		       {"terminate", cxx::terminates, {0}}};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	std::set_terminate(cxx::at_terminate);
	for (auto &t : threads)
		std::thread([&t] {
			prctl(PR_SET_NAME, t.name);
			cxx::self = &t.tid;
			t.run();
		}).detach();
	for (auto &t : threads)
		while (!t.tid)
			std::this_thread::yield();
	printf("ready %d", static_cast<int>(getpid()));
	for (auto &t : threads)
		printf(" %s=%d", t.name, t.tid.load());
	printf("\n");
	fflush(stdout);
	for (char byte; read(STDIN_FILENO, &byte, 1) == 1;)
		;
	_exit(0);
}
