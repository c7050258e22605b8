/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/parallel.h"

enum { MAX = 5000 };

struct counts {
	atomic_uint calls[MAX];
	atomic_uint blocked; /* calls on other threads that had all signals blocked */
	atomic_uint others;  /* calls on other threads */
	pthread_t caller;
};

static void count(void *ctx, size_t i)
{
	struct counts *counts = ctx;
	sigset_t mask;

	atomic_fetch_add(&counts->calls[i], 1);
	if (pthread_equal(pthread_self(), counts->caller))
		return;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	atomic_fetch_add(&counts->others, 1);
	atomic_fetch_add(&counts->blocked, sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1);
}

static void touch(void *ctx, size_t i)
{
	volatile char *page = ctx;

	page[0] = 1;
}

static void give_page(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr & ~(uintptr_t)4095;

	mmap((void *)at, 4096, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void touch_elsewhere(void *ctx, size_t i)
{
	const struct counts *counts = ((void **)ctx)[0];

	if (pthread_equal(pthread_self(), counts->caller))
		usleep(1000); /* the others get some */
	else
		touch(((void **)ctx)[1], i);
}

/* A file that is cut short under us faults in whichever thread reads it: its handler must run there. */
static void test_faults(void **state)
{
	const struct sigaction handler = {.sa_sigaction = give_page, .sa_flags = SA_SIGINFO};
	static struct counts counts;
	int fd = memfd_create("short", 0);
	struct sigaction before;
	void *ctx[2] = {&counts};

	assert_int_equal(ftruncate(fd, 4096), 0);
	ctx[1] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(ctx[1], MAP_FAILED);
	assert_int_equal(ftruncate(fd, 0), 0);
	sigaction(SIGBUS, &handler, &before);
	counts.caller = pthread_self();
	parallel_for(100, touch_elsewhere, ctx);
	sigaction(SIGBUS, &before, NULL);
	munmap(ctx[1], 4096);
	close(fd);
}

static void test_each_once(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 3, 17, MAX};
	static struct counts counts;

	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		memset(&counts, 0, sizeof(counts));
		counts.caller = pthread_self();
		parallel_for(sizes[n], count, &counts);
		for (size_t i = 0; i < MAX; i++)
			assert_int_equal(counts.calls[i], i < sizes[n]);
		assert_int_equal(counts.blocked, counts.others);
	}
}

/* Signals are the caller's: its mask is as before. */
static void test_signals(void **state)
{
	static struct counts counts = {0};
	sigset_t before, after, usr;

	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	counts.caller = pthread_self();
	parallel_for(100, count, &counts);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < 32; sig++)
		assert_int_equal(sigismember(&before, sig), sigismember(&after, sig));
	assert_int_equal(sigismember(&after, SIGUSR2), 1);
	assert_int_equal(sigismember(&after, SIGINT), 0);
	pthread_sigmask(SIG_UNBLOCK, &usr, NULL);
}

/* On one core the caller does all of it. */
static void test_one_core(void **state)
{
	static struct counts counts = {0};
	cpu_set_t all, one;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	counts.caller = pthread_self();
	parallel_for(100, count, &counts);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(counts.others, 0);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(counts.calls[i], 1);
}

/* A call that waits for another shows that both run at once. */
struct meeting {
	pthread_barrier_t barrier;
};

static void meet(void *ctx, size_t i)
{
	pthread_barrier_wait(&((struct meeting *)ctx)->barrier);
}

static void test_at_once(void **state)
{
	struct meeting meeting;
	cpu_set_t all;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) < 2) {
		print_message("skipped: there is but one core\n");
		skip();
	}
	pthread_barrier_init(&meeting.barrier, NULL, 2);
	parallel_for(2, meet, &meeting);
	pthread_barrier_destroy(&meeting.barrier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_once),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_one_core),
		cmocka_unit_test(test_at_once),
	};

	return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
