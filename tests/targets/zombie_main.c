/* SPDX-License-Identifier: MIT */
/* zombie_main: the main thread has ended, "worker" lives on and serves. */
#include "target.h"

static pthread_t main_thread;

FRAME static void worker(void)
{
	target_arrived();
	pthread_join(main_thread, NULL);
	target_ready();
	target_serve(NULL);
}

int main(void)
{
	target_init();
	main_thread = pthread_self();
	target_start("worker", worker);
	pthread_exit(NULL);
}
