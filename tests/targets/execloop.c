/* SPDX-License-Identifier: MIT */
/*
 * execloop main|thread [COUNT]: executes itself again and again, from the main thread or from another one (which then
 * takes the process id over). COUNT, in the command line, tells how often.
 */
#include "target.h"

static char **arguments;

static void *bystander(void *arg)
{
	target_block();
	return arg;
}

static void *again(void *arg)
{
	char count[24];

	snprintf(count, sizeof(count), "%ld", atol(arguments[2]) + 1);
	execl("/proc/self/exe", arguments[0], arguments[1], count, NULL);
	target_die("execl");
	return arg;
}

int main(int argc, char **argv)
{
	char *first[] = {argv[0], argv[1], "0", NULL};
	pthread_t threads[3];

	target_init();
	arguments = argc > 2 ? argv : first;
	if (argc == 2)
		target_ready();
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, bystander, NULL);
	if (!strcmp(argv[1], "main"))
		again(NULL);
	pthread_create(&threads[2], NULL, again, NULL);
	target_block();
}
