/* SPDX-License-Identifier: MIT */
/*
 * watched [MS]: threads that do not move, that move and come back, and that run. `holder` has a mutex and sleeps, `stuck` waits for it;
 * `idle` waits for a condition that never comes; `reader` reads a pipe, again and again, that `feeder` writes to in naps of so long; `spinner`
 * runs. Asked for it, `brief` ends ("end") and another thread is born ("bear", with its number), `late`; two threads
 * wait for each other ("deadlock"); `reader` gets nothing any more ("starve"); or others of its user may not look ("hide") and may
 * again ("show").
 */
#include "target.h"

#include <semaphore.h>
#include <stdbool.h>
#include <time.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t of_never = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold;
static sem_t has_it, end_brief;
static atomic_bool starve;
static atomic_ulong spins;
static int channel[2];
static struct timespec nap;

static void hold_mutex(void)
{
	pthread_mutex_lock(&held);
	sem_post(&has_it);
	target_block();
}

FRAME static void want_mutex(void)
{
	while (sem_wait(&has_it) < 0)
		;
	target_arrived();
	pthread_mutex_lock(&held);
}

FRAME static void await_nothing(void)
{
	pthread_mutex_lock(&of_never);
	target_arrived();
	for (;;)
		pthread_cond_wait(&never, &of_never);
}

FRAME static void read_again(void)
{
	char byte;

	target_arrived();
	while (read(channel[0], &byte, 1) == 1)
		;
}

FRAME static void feed(void)
{
	target_arrived();
	for (;;) {
		if (!atomic_load(&starve) && write(channel[1], "x", 1) != 1)
			target_die("write");
		nanosleep(&nap, NULL);
	}
}

FRAME static void spin(void)
{
	target_arrived();
	for (;;)
		atomic_fetch_add_explicit(&spins, 1, memory_order_relaxed);
}

FRAME static void live_briefly(void)
{
	target_arrived();
	while (sem_wait(&end_brief) < 0)
		;
}

FRAME static void take_both(pthread_mutex_t *first, pthread_mutex_t *second)
{
	pthread_mutex_lock(first);
	pthread_barrier_wait(&both_hold);
	target_arrived();
	pthread_mutex_lock(second);
}

static void left_first(void)
{
	take_both(&left, &right);
}

static void right_first(void)
{
	take_both(&right, &left);
}

FRAME static void come_late(void)
{
	target_block();
}

/* Says its number when it is where it should be. */
static void bear(const char *name, void (*run)(void))
{
	int at = target_nthreads;

	target_start(name, run);
	while (!atomic_load(&target_threads[at].tid))
		sched_yield();
	printf("%d\n", (int)target_threads[at].tid);
}

static void answer(const char *question)
{
	if (strcmp(question, "end") == 0) {
		sem_post(&end_brief);
		puts("yes");
	} else if (strcmp(question, "bear") == 0) {
		bear("late", come_late);
	} else if (strcmp(question, "starve") == 0) {
		atomic_store(&starve, true);
		puts("yes");
	} else if (strcmp(question, "hide") == 0 || strcmp(question, "show") == 0) {
		printf("%d\n", prctl(PR_SET_DUMPABLE, *question == 's'));
	} else if (strcmp(question, "deadlock") == 0) {
		target_start("left", left_first);
		bear("right", right_first);
	}
}

int main(int argc, char **argv)
{
	nap.tv_nsec = (argc > 1 ? atol(argv[1]) : 3) * 1000 * 1000;
	target_init();
	if (pipe(channel) < 0)
		target_die("pipe");
	pthread_barrier_init(&both_hold, NULL, 2);
	sem_init(&has_it, 0, 0);
	sem_init(&end_brief, 0, 0);
	target_start("holder", hold_mutex);
	target_start("stuck", want_mutex);
	target_start("idle", await_nothing);
	target_start("reader", read_again);
	target_start("feeder", feed);
	target_start("spinner", spin);
	target_start("brief", live_briefly);
	target_ready();
	target_serve(answer);
}
