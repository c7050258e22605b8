/* SPDX-License-Identifier: MIT */
/*
 * waits_woken [DEPTH]: the thread "reader" waits on a pipe, and "writer" wakes it again and again, DEPTH calls deep,
 * some milliseconds after it has read what was written before. Question: any; the answer is how often.
 */
#include "waits.h"

static int depth = 10, ends[2];
static unsigned long long written; /* by the one thread */
static atomic_ullong woken;

FRAME static int bottom_wake(void)
{
	while (atomic_load(&woken) < written)
		waits_nap(1000);
	waits_nap(4000);
	written++;
	if (write(ends[1], "", 1) != 1)
		target_die("write");
	return 0;
}

FRAME static int descend(int left)
{
	volatile char room[48];

	room[0] = (char)left;
	return (left > 1 ? descend(left - 1) : bottom_wake()) + room[0];
}

FRAME static void writer(void)
{
	target_arrived();
	for (;;)
		descend(depth);
}

FRAME static void reader(void)
{
	char byte;

	target_arrived();
	while (read(ends[0], &byte, 1) == 1)
		atomic_fetch_add(&woken, 1);
}

static void answer(const char *question)
{
	printf("%llu\n", atomic_load(&woken));
}

int main(int argc, char **argv)
{
	target_init();
	depth = argc > 1 ? atoi(argv[1]) : depth;
	if (pipe(ends) < 0)
		target_die("pipe");
	target_start("reader", reader);
	target_start("writer", writer);
	target_ready();
	target_serve(answer);
}
