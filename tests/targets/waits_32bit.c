/* SPDX-License-Identifier: MIT */
/* waits_32bit: a 32-bit program, without a libc, which sleeps again and again, or, with an argument, for good. It answers nothing. */
/* build-with: i686-linux-gnu-gcc */
/* build: -fno-omit-frame-pointer -fno-stack-protector -fno-pic -no-pie -nostdlib -static */
#include <asm/unistd.h>

#include "frame.h"

enum { NAP_NS = 4000000, FOR_GOOD_S = 1000000, PR_SET_PDEATHSIG = 1, SIGKILL = 9 };

static int call(int number, int a, int b, int c)
{
	int result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

static void tell_ready(void)
{
	char line[] = "ready 0000000000\n", *digit = line + sizeof(line) - 2;

	for (int pid = call(__NR_getpid, 0, 0, 0); pid; pid /= 10)
		*--digit = (char)('0' + pid % 10);
	call(__NR_write, 1, (int)line, sizeof(line) - 1);
}

FRAME static void narrow_wait(int seconds)
{
	const int nap[] = {seconds, NAP_NS};

	call(__NR_nanosleep, (int)nap, 0, 0);
}

FRAME static void narrow_caller(int seconds)
{
	narrow_wait(seconds);
}

void _start(void);
void _start(void)
{
	const int *stack = __builtin_frame_address(0); /* nobody has called it: the count of arguments is where one would return to */
	int seconds = stack[1] > 1 ? FOR_GOOD_S : 0;

	call(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
	tell_ready();
	for (;;)
		narrow_caller(seconds);
}
