/* SPDX-License-Identifier: MIT */
/* The program that `make demo` shows: one thread for each way to wait, and one that computes. */
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "waits.h"

namespace demo
{

template <typename T> class Queue
{
	std::mutex mutex;
	std::condition_variable filled;
	std::deque<T> items;

      public:
	T pop()
	{
		std::unique_lock<std::mutex> lock(mutex);
		filled.wait(lock, [this] { return !items.empty(); });
		T item = std::move(items.front());
		items.pop_front();
		return item;
	}
};

static Queue<std::string> jobs;

static void *work(void *)
{
	for (;;)
		std::puts(jobs.pop().c_str());
}

class Checksum
{
	uint64_t sum = 0xcbf29ce484222325;

	void add(uint8_t byte)
	{
		sum = (sum ^ byte) * 0x100000001b3;
	}

      public:
	uint64_t of(const std::vector<uint8_t> &data)
	{
		for (uint8_t byte : data)
			add(byte);
		return sum;
	}
};

static void *compute(void *)
{
	std::vector<uint8_t> data(1 << 16, 42);
	Checksum checksum;

	for (;;)
		data[0] = static_cast<uint8_t>(checksum.of(data));
}

static void start(const char *name, void *(*body)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, nullptr, body, argument) != 0 || pthread_setname_np(thread, name) != 0) {
		std::fprintf(stderr, "demo: no thread for %s\n", name);
		std::exit(1);
	}
}

/* How many threads of this process the kernel reports as asleep. */
static int count_asleep()
{
	int count = 0;

	for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
		std::ifstream stat(task.path() / "stat");
		std::string line;

		std::getline(stat, line);
		count += line.find(") S ") != std::string::npos;
	}
	return count;
}

} // namespace demo

int main()
{
	static pthread_mutex_t account = PTHREAD_MUTEX_INITIALIZER;
	static int sockets[2];

	/* End with the parent; and let any process of this user look, where Yama allows only ancestors to. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
		return 1;
	pthread_mutex_lock(&account);

	demo::start("teller", update_account, &account);
	demo::start("server", serve_client, &sockets[0]);
	demo::start("retry", retry_later, nullptr);
	for (int i = 0; i < 3; i++)
		demo::start("worker", demo::work, nullptr);
	demo::start("checksum", demo::compute, nullptr);

	/* Ready when all that wait do wait. */
	while (demo::count_asleep() < 6)
		std::this_thread::yield();
	std::printf("ready %d\n", getpid());
	std::fflush(stdout);
	for (;;)
		pause();
}
