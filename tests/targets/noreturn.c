/* SPDX-License-Identifier: MIT */
/*
 * noreturn: the call to a function that never returns is the last instruction of its caller, so the return address
 * is the first byte of the next function: only pc - 1 names the caller.
 */
/* build: -falign-functions=1 */
#include "target.h"

__attribute__((noreturn)) FRAME static void never_returns(void)
{
	target_block();
	__builtin_unreachable();
}

IN_ORDER FRAME static void last_call(void)
{
	never_returns();
}

IN_ORDER FRAME static int next_function(void)
{
	return 1;
}

FRAME static void worker(void)
{
	last_call();
}

int main(void)
{
	target_init();
	target_start("worker", worker);
	target_ready();
	target_serve(NULL);
	return next_function();
}
