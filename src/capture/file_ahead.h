/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_FILE_AHEAD_H
#define STAKEOUT_CAPTURE_FILE_AHEAD_H

#include <stdbool.h>
#include <sys/types.h>

struct capture;
struct file_look;
struct open_files;
struct snapshot;

/*
 * Where many threads wait for descriptors, the program that tells of these is loaded while stacks are copied, by a thread of ours, and the
 * descriptors are looked at: loading takes longer than all else that is done with it. For what is gathered between the passes only, as all
 * threads have to stand still from before it begins.
 */
struct file_ahead;

/* After the first pass. NULL: it does not pay, or cannot be had. The target must outlive it. */
struct file_ahead *file_ahead_begin(const struct capture *capture, const struct snapshot *snap);
void file_ahead_destroy(struct file_ahead *ahead);

/* Waits until it is done. What was loaded is the caller's now; NULL: it could not be. */
struct open_files *file_ahead_end(struct file_ahead *ahead, bool *tells_tcp);

/* What the descriptors were then of this thread's table, which is that of the process. NULL: they were not looked at. */
const struct file_look *file_ahead_of(const struct file_ahead *ahead, pid_t tid);

#endif
