/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_FULL_ONCE_H
#define STAKEOUT_TESTS_FULL_ONCE_H

#include "cmocka_all.h"

#include <errno.h>
#include <stdio.h>

/* A stream that writes after every few bytes, and finds its disk full once only, in the middle of a report. */
struct full_once {
	char buf[16];
	unsigned writes;
};

static inline ssize_t full_once_write(void *cookie, const char *data, size_t len)
{
	struct full_once *full = cookie;

	if (++full->writes != 2)
		return (ssize_t)len;
	errno = ENOSPC;
	return 0;
}

/* For fclose(), before `full` goes. */
static inline FILE *full_once_open(struct full_once *full)
{
	FILE *out;

	*full = (struct full_once){0};
	out = fopencookie(full, "w", (cookie_io_functions_t){.write = full_once_write});
	assert_non_null(out);
	assert_int_equal(setvbuf(out, full->buf, _IOFBF, sizeof(full->buf)), 0);
	return out;
}

#endif
