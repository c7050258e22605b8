/* SPDX-License-Identifier: MIT */
/*
 * plain: a thread blocked in outer > middle > inner. The plain_*.c programs are this one built in other ways: other
 * linking, another libc, other unwind information.
 */
#include "target.h"

FRAME static int inner(int n)
{
	target_block();
	return n;
}

FRAME static int middle(int n)
{
	return inner(n + 1) + n;
}

FRAME static int outer(int n)
{
	return middle(n + 1) + n;
}

FRAME static void worker(void)
{
	outer(1);
}

int main(void)
{
	target_init();
	target_start("worker", worker);
	target_ready();
	target_serve(NULL);
}
