/* SPDX-License-Identifier: MIT */
#include "capture/window.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signals.h"

enum {
	READY_NS = 20 * 1000 * 1000, /* for a helper to be there: then its CPU is done without */
	PATIENCE_NS = 2000 * 1000 * 1000, /* for the work to come to an end */
	NAP_NS = 20 * 1000,
	STACK = 256 << 10,
	TOUCHED = 32 << 10, /* of each stack, before the window */
};

static const unsigned ABANDONED = UINT_MAX;

enum step { GATHERING, OPEN, CLOSED };
enum share { NONE, OFFERED, BEGUN };

/* Lives as long as any of its threads: the last one frees it. */
struct window {
	struct window_plan plan;
	struct window_result result;
	atomic_uint step;   /* enum step; helpers sleep on it while they gather */
	atomic_uint ready;  /* helpers that wait to be woken; the leader sleeps on it */
	atomic_uint inside; /* helpers that spin */
	atomic_uint_fast64_t until;
	atomic_uint touching; /* threads that are at the work, and not blocked; or ABANDONED, which only 0 can become */
	atomic_uchar shares[CPU_SETSIZE]; /* enum share, of each helper that is inside, by its number */
	bool (*part)(void *arg, unsigned share, unsigned of);
	void *part_arg;
	unsigned of;
	atomic_uint users;
	unsigned helpers;
};

static __thread struct window *current;

static void give(struct window *w)
{
	if (atomic_fetch_sub(&w->users, 1) == 1)
		free(w);
}

/* False: the work was abandoned. */
static bool begin_touching(struct window *w)
{
	unsigned n = atomic_load(&w->touching);

	while (n != ABANDONED)
		if (atomic_compare_exchange_weak(&w->touching, &n, n + 1))
			return true;
	return false;
}

static void end_touching(struct window *w)
{
	atomic_fetch_sub(&w->touching, 1);
}

void window_block(void)
{
	end_touching(current);
}

bool window_go_on(void)
{
	return begin_touching(current);
}

static void sleep_while(atomic_uint *word, unsigned value, uint64_t ns)
{
	struct timespec rest = ns_to_timespec(ns);

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &rest, NULL, 0);
}

static void wake_all(atomic_uint *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void pause_spinning(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* So that it does not fault later. */
static void touch_stack(void)
{
	volatile char room[TOUCHED];

	for (size_t i = 0; i < sizeof(room); i += 1024)
		room[i] = 0;
}

/* Who came too late is none of those that the work is shared with, or of those that it waits for. */
static void spin(struct window *w, unsigned number)
{
	while (atomic_load_explicit(&w->step, memory_order_acquire) == OPEN && monotonic_ns() < atomic_load(&w->until)) {
		unsigned char offered = OFFERED;

		if (atomic_load(&w->shares[number]) == OFFERED &&
		    atomic_compare_exchange_strong(&w->shares[number], &offered, BEGUN)) {
			if (begin_touching(w) && w->part(w->part_arg, number, w->of))
				end_touching(w);
			atomic_store(&w->shares[number], NONE);
		}
		pause_spinning();
	}
}

/* Until the helper has done its share, or will not begin it any more. When the window is over others may have this CPU. */
static void await_share(struct window *w, unsigned number)
{
	const struct timespec moment = {.tv_nsec = NAP_NS};

	while (atomic_load(&w->shares[number]) != NONE) {
		unsigned char offered = OFFERED;

		if (monotonic_ns() < w->until)
			continue;
		if (atomic_compare_exchange_strong(&w->shares[number], &offered, NONE))
			return;
		nanosleep(&moment, NULL);
	}
}

bool window_share(bool (*part)(void *arg, unsigned share, unsigned of), void *arg)
{
	struct window *w = current;

	w->part = part;
	w->part_arg = arg;
	for (unsigned i = 1; i < w->of; i++)
		atomic_store(&w->shares[i], OFFERED);
	if (!part(arg, 0, w->of))
		return false;
	window_block();
	for (unsigned i = 1; i < w->of; i++)
		await_share(w, i);
	return window_go_on();
}

static void *help(void *arg)
{
	struct window *w = arg;
	uint64_t give_up;

	touch_stack();
	give_up = monotonic_ns() + PATIENCE_NS;
	atomic_fetch_add(&w->ready, 1);
	wake_all(&w->ready);
	while (atomic_load(&w->step) == GATHERING && monotonic_ns() < give_up)
		sleep_while(&w->step, GATHERING, READY_NS);
	current = w;
	if (atomic_load(&w->step) == OPEN)
		spin(w, atomic_fetch_add(&w->inside, 1) + 1);
	give(w);
	return NULL;
}

static void await_ready(struct window *w)
{
	uint64_t give_up = monotonic_ns() + READY_NS;
	unsigned ready;

	while ((ready = atomic_load(&w->ready)) < w->helpers && monotonic_ns() < give_up)
		sleep_while(&w->ready, ready, READY_NS / 10);
}

static void open_window(struct window *w, uint64_t opened)
{
	const uint64_t patience = opened + w->plan.most_ns / 4;
	const unsigned ready = atomic_load(&w->ready); /* others may come, but are not waited for */

	atomic_store(&w->until, opened + w->plan.most_ns);
	atomic_store(&w->step, OPEN);
	wake_all(&w->step);
	while (atomic_load(&w->inside) < ready && monotonic_ns() < patience)
		pause_spinning();
	w->of = atomic_load(&w->inside) + 1;
}

static void *lead(void *arg)
{
	struct window *w = arg;
	uint64_t opened, until;

	current = w;
	touch_stack();
	await_ready(w);
	opened = monotonic_ns();
	until = opened + w->plan.most_ns;
	open_window(w, opened);
	if (begin_touching(w) && w->plan.work(w->plan.arg, opened, until))
		end_touching(w);
	while (w->plan.lingers && monotonic_ns() < until)
		pause_spinning();
	atomic_store_explicit(&w->step, CLOSED, memory_order_release);
	w->result = (struct window_result){.length_ns = monotonic_ns() - opened, .taken = atomic_load(&w->inside) + 1};
	give(w);
	return NULL;
}

static int start(struct window *w, int cpu, void *(*run)(void *arg), pthread_t *thread)
{
	struct sched_param first = {.sched_priority = w->plan.priority};
	pthread_attr_t attr;
	cpu_set_t cpus;
	int error;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &first);
	atomic_fetch_add(&w->users, 1);
	error = pthread_create(thread, &attr, run, w);
	if (error)
		atomic_fetch_sub(&w->users, 1);
	pthread_attr_destroy(&attr);
	return -error;
}

/* One that cannot be made, say because its CPU has gone offline, is done without. */
static int start_helpers(struct window *w, int leader_cpu)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		pthread_t thread;
		int rc;

		if (cpu == leader_cpu || !CPU_ISSET(cpu, &w->plan.cpus))
			continue;
		rc = start(w, cpu, help, &thread);
		if (rc == -EPERM)
			return rc;
		if (rc == 0)
			pthread_detach(thread);
		w->helpers += rc == 0;
	}
	return 0;
}

static int join_leader(struct window *w, pthread_t leader)
{
	for (;;) {
		struct timespec until = ns_to_timespec(clock_ns(CLOCK_REALTIME) + PATIENCE_NS);
		unsigned nobody = 0;

		if (pthread_timedjoin_np(leader, NULL, &until) == 0)
			return 0;
		if (!atomic_compare_exchange_strong(&w->touching, &nobody, ABANDONED))
			continue; /* it is at it, only slowly */
		pthread_detach(leader);
		return -ETIMEDOUT;
	}
}

int window_run(const struct window_plan *plan, struct window_result *out)
{
	struct window *w = calloc(1, sizeof(*w));
	int rc, here = sched_getcpu();
	pthread_t leader;
	sigset_t before;

	if (!w)
		return -ENOMEM;
	w->plan = *plan;
	atomic_store(&w->users, 1);
	signals_block_for_worker(&before);
	rc = here < 0 || here >= CPU_SETSIZE ? -EAGAIN : start_helpers(w, here);
	if (rc == 0)
		rc = start(w, here, lead, &leader);
	signals_restore(&before);
	if (rc == 0)
		rc = join_leader(w, leader);
	else {
		atomic_store(&w->step, CLOSED); /* helpers that were made go home */
		wake_all(&w->step);
	}
	if (rc == 0)
		*out = w->result;
	give(w);
	return rc;
}
