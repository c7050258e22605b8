/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_LOADING_H
#define STAKEOUT_KERNEL_LOADING_H

#include <bpf/libbpf.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "kernel/words.h"

/* What the loaders of BPF programs share. Only for builds with BPF. */

/*
 * libbpf prints to standard error, unless the program, which may use it too, has told it otherwise; we report failures in our
 * own words. From the first loading_begin() to the last loading_end(), in whichever threads, it is silent.
 */
void loading_begin(void);
void loading_end(void);
int loading_quiet(enum libbpf_print_level level, const char *fmt, va_list ap); /* for libbpf_set_print() */

#define LOADING_QUIETLY _cleanup_(cleanup_loading) __attribute__((unused)) int quiet = (loading_begin(), 0)

static inline void cleanup_loading(int *unused)
{
	loading_end();
}

/* Explains to the user why a step was refused. `doubt`: what the kernel may lack, or NULL. Returns -code. */
int loading_explain(struct err *err, int code, const char *step, const char *doubt);

/* Our pid namespace, as the programs want it; 0: the initial one. */
uint32_t loading_pid_namespace(void);

/* Runs the iterator of a link once and leaves what it wrote in `out`. */
int loading_read_iterator(int link, struct words *out, struct err *err);

#endif
