/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_WINDOW_LOOK_H
#define STAKEOUT_KERNEL_WINDOW_LOOK_H

#include "base/err.h"
#include "bpf/window_request.h"

/* A BPF program that looks at many threads in one call, for those who have no time: see bpf/window.bpf.c. */
struct window_look;

/* The error message says what is missing. Linux 5.17 and later have it all. */
int window_look_create(struct err *err, struct window_look **out);
void window_look_destroy(struct window_look *look);

/* What the program is to do, and where it writes: shared with it, so that nothing is copied. */
struct window_request *window_look_request(struct window_look *look);

/* Runs it for some of them; several threads may do so at once. Does not wait. 0 or -errno. */
int window_look_run(struct window_look *look, const struct window_range *range);

#endif
