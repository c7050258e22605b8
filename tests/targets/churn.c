/* SPDX-License-Identifier: MIT */
/* churn: threads are created and end all the time. Question: any; the answer is how many have ended. */
#include "target.h"

enum { MAKERS = 4, AT_ONCE = 4 };

static atomic_ullong ended;

static void *short_life(void *arg)
{
	atomic_fetch_add(&ended, 1);
	return arg;
}

static void *maker(void *arg)
{
	pthread_t threads[AT_ONCE];

	for (;;) {
		for (int i = 0; i < AT_ONCE; i++)
			if (pthread_create(&threads[i], NULL, short_life, NULL))
				target_die("pthread_create");
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(threads[i], NULL);
	}
	return arg;
}

static void answer(const char *question)
{
	printf("%llu\n", atomic_load(&ended));
}

int main(void)
{
	pthread_t thread;

	target_init();
	for (int i = 0; i < MAKERS; i++)
		if (pthread_create(&thread, NULL, maker, NULL))
			target_die("pthread_create");
	target_ready();
	target_serve(answer);
}
