/* SPDX-License-Identifier: MIT */
/* deadlock: two threads that each hold the mutex the other one waits for. */
#include "target.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold;

FRAME static void take_second(pthread_mutex_t *second)
{
	target_arrived();
	pthread_mutex_lock(second);
}

FRAME static void take_both(pthread_mutex_t *first, pthread_mutex_t *second)
{
	pthread_mutex_lock(first);
	pthread_barrier_wait(&both_hold);
	take_second(second);
}

FRAME static void a_then_b(void)
{
	take_both(&a, &b);
}

FRAME static void b_then_a(void)
{
	take_both(&b, &a);
}

int main(void)
{
	target_init();
	pthread_barrier_init(&both_hold, NULL, 2);
	target_start("a_then_b", a_then_b);
	target_start("b_then_a", b_then_a);
	target_ready();
	target_serve(NULL);
}
