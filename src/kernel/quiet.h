/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_QUIET_H
#define STAKEOUT_KERNEL_QUIET_H

#include <bpf/libbpf.h>
#include <stdarg.h>

/* libbpf prints to standard error unless told otherwise; what failed is said in our own words. */
static inline int quiet_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return 0;
}

#endif
