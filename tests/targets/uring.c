/* SPDX-License-Identifier: MIT */
/*
 * uring: a process for which the kernel runs a thread of its own (io_uring with a polling thread). Ends with 77 where
 * the kernel does not allow it.
 */
#include "target.h"

#include <linux/io_uring.h>

int main(void)
{
	struct io_uring_params params = {.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 10};

	target_init();
	if (syscall(SYS_io_uring_setup, 4, &params) < 0)
		return 77;
	target_ready();
	target_serve(NULL);
}
